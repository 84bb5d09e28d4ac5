"""The viewer behind a real nginx, with the configuration that the README gives."""

import grp
import os
import re
import shlex
import ssl
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import JSONResponse
from starlette.routing import Route

import viewer
from tests.browser.test_live_run import OpenRun, answer, use_tool
from tests.servers.nginx import nginx_running
from tests.servers.postgres import free_port
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import served

README = (Path(viewer.__file__).parent / "README.md").read_text()
CONFIGURATION, *_ = re.findall(r"```nginx\n(.*?)```", README, re.DOTALL)
COMMAND, *_ = re.findall(r"```sh\n(tachograph serve [^`]*--uds.*?)```", README, re.DOTALL)
SOCKET = "/run/tachograph/viewer.sock"
HOST = "ledger.example"
TIMEOUT_S = 30


@contextmanager
def nginx(folder, **changes):
    """The README's nginx with a certificate of its own, on a free port and for localhost, too; its address."""
    port = free_port()
    certificate = certificate_in(folder)
    text = CONFIGURATION.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace(HOST, f"{HOST} localhost", 1)
    text = re.sub(r"(ssl_certificate(_key)?) \S+;", rf"\1 {certificate};", text)
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    with nginx_running(text, port, folder):
        yield f"https://localhost:{port}"


def certificate_in(folder):
    """A certificate that nobody vouches for, with its key, as one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    began = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    key_form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*key_form))
    return path


@contextmanager
def client_at(origin):
    """A program that talks to nginx under the name of the README."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    host = f"{HOST}:{origin.rpartition(':')[2]}"
    with httpx2.Client(base_url=origin, verify=unchecked, timeout=TIMEOUT_S, headers={"Host": host}) as client:
        yield client


@pytest.fixture
def open_run(tmp_path):
    run = OpenRun(tmp_path / "runs.db")
    yield run
    run.close()


@pytest.fixture
def origin(open_run, tmp_path):
    """nginx before `tachograph serve` on a Unix socket, both as the README has them."""
    changed = {SOCKET: str(tmp_path / "socket"), "runs.db": str(tmp_path / "runs.db")}
    changed["www-data"] = grp.getgrgid(os.getgid()).gr_name
    _, *options = [changed.get(word, word) for word in shlex.split(COMMAND.replace("\\\n", ""))]
    serve = "from viewer.cli import main; main(prog_name='tachograph')"
    command = [sys.executable, "-c", serve, *options]
    serving = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert serving.stdout.readline().startswith("Serving")
        with nginx(tmp_path, **{SOCKET: changed[SOCKET]}) as origin:
            yield origin
    finally:
        serving.terminate()
        serving.communicate(timeout=TIMEOUT_S)


def test_pages_load_all_that_they_need_and_lead_to_one_another(watch, origin):
    watched = watch(at=f"{origin}/ledger", ignore_https_errors=True)
    page = watched.open("/")
    page.get_by_role("link", name="What restarts?").first.click()
    page.locator("#tool-1").wait_for()
    assert page.url.startswith(f"{origin}/ledger/trace?")
    page.get_by_role("link", name="s-1").first.click()
    page.wait_for_url(f"{origin}/ledger/sessions/s-1")
    # Only with the stylesheet is the way to the content out of sight.
    assert page.locator("a.skip").bounding_box()["y"] < 0


def test_a_page_on_a_running_run_is_live(watch, origin, open_run):  # CASES 48
    page = watch(at=f"{origin}/ledger", ignore_https_errors=True).open("/trace?sessionId=s-1&runId=r-live")
    page.locator("#tool-1").wait_for()
    open_run.take(use_tool)
    page.locator("#tool-2").wait_for()
    open_run.take(answer)
    open_run.end()
    page.locator("live-run").wait_for(state="detached")


def test_events_come_through_while_the_answer_goes_on(origin, open_run):  # CASES 48
    with (
        client_at(origin) as client,
        client.stream("GET", "/ledger/api/diagnosis/s-1/runs/r-live/live?from=now") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == ": following"
        open_run.take(use_tool)
        # A proxy that holds back would say nothing before the end, which comes only after this.
        assert next(line for line in lines if line.startswith("data:"))
        open_run.end()
        assert "event: end" in list(lines)


def test_only_the_readmes_host_is_answered(origin):
    with client_at(origin) as client:
        assert client.get("/ledger/healthz").status_code == 200
        refused = client.get("/ledger/healthz", headers={"Host": "evil.example"})
        assert refused.json()["code"] == "invalid_host"
        own, foreign = (
            client.post("/ledger/api/feedback", json={"useful": True}, headers={"Origin": origin}).json()["code"]
            for origin in (f"https://{client.headers['host']}", "https://evil.example")
        )
        assert own != "foreign_origin"
        assert foreign == "foreign_origin"


async def told(request):
    """What an endpoint is told of where its request came from."""
    return JSONResponse([request.client.host, request.url.scheme, request.headers["host"], request.url.path])


@pytest.mark.parametrize("passed", ["http://tachograph;", "http://tachograph/;"], ids=["kept", "taken off"])
def test_scheme_host_client_and_path_are_those_of_the_client(tmp_path, passed):
    with (
        served(
            FakeReader(),
            extra_routes=[Route("/told", told)],
            root_path="/ledger",
            allowed_hosts=[HOST],
            trusted_proxies=["127.0.0.1"],
        ) as upstream,
        nginx(tmp_path, **{f"unix:{SOCKET}": upstream.removeprefix("http://"), "http://tachograph;": passed}) as origin,
        client_at(origin) as client,
    ):
        spoofed = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"}
        found = client.get("/ledger/told", headers=spoofed).json()
        assert found == ["127.0.0.1", "https", client.headers["host"], "/ledger/told"]
