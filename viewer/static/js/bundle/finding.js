// What is raised of a file that is no bundle, and of one that does not hold what it claims. Of each the sentence is named.

import { said } from "./said.js";

export class InvalidBundle extends Error {
  constructor(sentence, facts) {
    super(said(sentence, facts));
    this.name = "InvalidBundle";
  }
}

/** `problem` is the code that the command gives it, too. */
export class BundleWrong extends Error {
  constructor(problem, place, sentence, facts) {
    super(`${place}: ${said(sentence, facts)} (${problem})`);
    Object.assign(this, { name: "BundleWrong", problem, place });
  }
}

export function require(holds, problem, place, sentence, facts) {
  if (!holds) throw new BundleWrong(problem, place, sentence, facts);
}

export const eventAt = (number) => said("event", { number });

export const contentOf = (digest) => said("content", { digest });
