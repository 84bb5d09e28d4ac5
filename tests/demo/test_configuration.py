"""What is set: the command line over the environment over the file over the defaults, and everything wrong at once."""

from pathlib import Path

import pytest

from demo.bounds import CHAT_TIMEOUT_S
from demo.configuration import (
    FILE_BYTES_MAX,
    BadConfiguration,
    read_configuration,
    without_password,
)
from demo.options import OPTIONS
from demo.settings import NO_KEY, Provider, ledger_url, provider_of, settings_of

ROOT = Path(__file__).parents[2]
SECRET = "sesame"


@pytest.fixture
def read(tmp_path):
    """`read(flags=, environ=, file=)`, where a folder of logs is set."""

    def read(flags=None, environ=None, file=None):
        path = None
        if file is not None:
            path = tmp_path / "demo.toml"
            path.write_bytes(file if isinstance(file, bytes) else file.encode())
        return read_configuration({"logs": str(tmp_path)} | (flags or {}), environ or {}, path)

    return read


def problems(read, **given):
    with pytest.raises(BadConfiguration) as caught:
        read(**given)
    return caught.value.problems


def test_the_command_line_wins_over_the_environment_that_over_the_file_that_over_the_default(read, tmp_path):
    everything = {"flags": {"port": "1"}, "environ": {"TACHOGRAPH_PORT": "2"}, "file": "port = 3"}
    seen = []
    for source in ("flags", "environ", "file", None):
        given = read(**everything)
        seen.append((given["port"], given.given["port"].origin))
        everything.pop(source, None)
    file = f"file {tmp_path / 'demo.toml'}"
    assert seen == [(1, "flag --port"), (2, "environment TACHOGRAPH_PORT"), (3, file), (0, "default")]


def test_the_file_may_be_named_by_the_environment(tmp_path):
    (tmp_path / "of-env.toml").write_text(f'port = 7\nlogs = "{tmp_path}"')
    given = read_configuration({}, {"TACHOGRAPH_CONFIG": str(tmp_path / "of-env.toml")})
    assert (given["port"], given["logs"]) == (7, tmp_path)


def test_what_is_empty_is_not_set(read):
    given = read(flags={"port": ""}, environ={"TACHOGRAPH_PORT": "", "REDIS_URL": ""}, file='openai_model = ""')
    assert (given["port"], given["redis_url"], given["openai_model"]) == (0, None, None)


def test_everything_that_is_wrong_is_told_at_once_with_where_it_stands(read, tmp_path):
    told = problems(
        read,
        flags={"logs": "/nowhere", "run_timeout_s": "never"},
        environ={
            "TACHOGRAPH_PORT": "99999",
            "TACHOGRAPH_ACTIVE_RUNS_MAX": "0",
            "OPENAI_BASE_URL": "http://127.0.0.1:9",
        },
        file='redis_url = "127.0.0.1"\nprot = 1\ndata = ["a"]\nmodel_timeout_s = 0\n',
    )
    file = f"file {tmp_path / 'demo.toml'}"
    assert set(told) == {
        f"prot ({file}): is not known here; port is",
        f"data ({file}): must be a text or a number",
        "logs (flag --logs): there is no folder '/nowhere'",
        "port (environment TACHOGRAPH_PORT): must be a whole number from 0 to 65535",
        "active_runs_max (environment TACHOGRAPH_ACTIVE_RUNS_MAX): must be a whole number from 1 to 1000",
        f"redis_url ({file}): is no address like redis://127.0.0.1:6379/0",
        "run_timeout_s (flag --run-timeout-s): must be a number of seconds above 0 and at most 3600",
        f"model_timeout_s ({file}): must be a number of seconds above 0 and at most 3600",
        "OPENAI_BASE_URL is set; set OPENAI_MODEL to one of its models, too",
    }


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (f'openai_api_key = "{SECRET}', "is no TOML"),
        (f"openai_api_key = {SECRET}", "is no TOML"),
        (b"port = 1 # \xff", "cannot be read"),
        (b"#" * (FILE_BYTES_MAX + 1), "cannot be read: is longer than 65536 bytes"),
    ],
    ids=["not closed", "not quoted", "not utf-8", "too long"],
)
def test_a_file_that_cannot_be_read_is_told_without_its_words(read, file, told):
    (problem,) = problems(read, file=file)
    assert told in problem
    assert SECRET not in problem


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BadConfiguration, match=r"none\.toml cannot be read: No such file or directory"):
        read_configuration({"logs": str(tmp_path)}, {}, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", f"{SECRET}-clé"),
        ("OPENAI_API_KEY", f"{SECRET}\n"),
        ("REDIS_URL", f"rediss:{SECRET}"),
        ("REDIS_URL", f"redis://:{SECRET}@"),
        ("REDIS_URL", f"redis://:{SECRET}@127.0.0.1:port"),
        ("OPENAI_BASE_URL", f"ftp://me:{SECRET}@127.0.0.1"),
    ],
)
def test_a_secret_that_is_wrong_is_not_quoted(read, name, value):
    (problem,) = problems(read, environ={name: value, "OPENAI_MODEL": "m"})
    assert name in problem
    assert SECRET not in problem


@pytest.mark.parametrize("url", ["garbage", "x/v1", "ftp://x", "http://", "https:x", "http://[", "http://x:99999"])
def test_an_address_that_is_none_of_http_is_refused(read, url):
    (problem,) = problems(read, environ={"OPENAI_BASE_URL": url, "OPENAI_MODEL": "m"})
    assert problem.endswith("is no address like https://api.example.com/v1")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("redis://:s@h:1/0", "redis://***@h:1/0"),
        ("redis://me:s@h:1/0?password=s", "redis://***@h:1/0?***"),
        ("redis://me:s@s@h/0", "redis://***@h/0"),
        ("http://[", "***"),
        ("runs.db", "runs.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    assert without_password(address) == shown


def test_a_secret_is_shown_nowhere_and_is_no_option_of_the_command_line(read):
    given = read(environ={"OPENAI_BASE_URL": "https://x/v1", "OPENAI_MODEL": "m", "OPENAI_API_KEY": SECRET})
    provider = provider_of(given)
    assert provider == Provider("https://x/v1", SECRET, "m")
    assert given.given["openai_api_key"].shown == "***"
    assert SECRET not in repr(provider) + repr(settings_of(given, provider)) + repr(given)


def test_a_key_alone_sends_nothing_to_another_machine(read):
    assert provider_of(read(environ={"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"})) is None


def test_without_a_key_a_word_is_sent_that_is_none(read):
    provider = provider_of(read(environ={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m"}))
    assert provider is not None
    assert provider.api_key == NO_KEY


def test_what_is_set_is_what_the_app_is_opened_with(read, tmp_path):
    given = read(
        flags={"data": str(tmp_path / "d"), "run_timeout_s": "2.5", "active_runs_max": "3"},
        environ={"REDIS_URL": "redis://127.0.0.1"},
    )
    settings = settings_of(given, Provider("http://x/v1", "k", "m"))
    assert (settings.data_folder, settings.log_folder) == (tmp_path / "d", tmp_path)
    assert (settings.timeout_s, settings.active_runs_max) == (2.5, 3)
    assert settings.redis_url == "redis://127.0.0.1"
    assert settings.db_url == ledger_url(tmp_path / "d") == f"sqlite:///{tmp_path / 'd' / 'runs.db'}"
    assert settings_of(read(), Provider("http://x/v1", "k", "m")).timeout_s == CHAT_TIMEOUT_S
    assert ledger_url(tmp_path, "sqlite:////c.db") == "sqlite:////c.db"


def test_a_command_that_only_reads_a_ledger_needs_nothing_else(tmp_path):
    environ = {"TACHOGRAPH_LOGS": "/nowhere", "TACHOGRAPH_PORT": "x"}
    given = read_configuration({"data": str(tmp_path)}, environ, only=("data", "db"))
    assert set(given) == {"data", "db"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_setting_is_in_the_readme(option):
    readme = (ROOT / "demo" / "README.md").read_text()
    assert f"`{option.name}`" in readme
    assert f"`{option.env}`" in readme
