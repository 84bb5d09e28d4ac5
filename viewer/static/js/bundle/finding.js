// What is raised of a file that is no bundle, and of one that does not hold what it claims; in the words of the command.

export class InvalidBundle extends Error {
  constructor(problem) {
    super(`the bundle ${problem}`);
    this.name = "InvalidBundle";
  }
}

export class BundleWrong extends Error {
  constructor(problem, place, detail) {
    super(`${place}: ${detail} (${problem})`);
    Object.assign(this, { name: "BundleWrong", problem, place, detail });
  }
}

export function require(holds, problem, place, detail) {
  if (!holds) throw new BundleWrong(problem, place, detail);
}
