"""The S3 server of the tests behind a door that can refuse, cut and forget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Rule = Callable[[str, str], str | None]
"""From method and path: None to let pass, `500` or `403` to refuse, `cut` to break off the answer,
`forget` to do it and answer 500, `deaf` to overhear its conditions."""


class Door:
    """`address`: of the server. `rule`: what happens to a request. `asked`: those that came."""

    def __init__(self) -> None:
        self.address = ""
        self.rule: Rule = lambda method, path: None
        self.asked: list[tuple[str, str]] = []

    def answer(self, inner: Any, environ: dict[str, Any], start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path))
        what = self.rule(method, path)
        if what == "deaf":
            environ = {k: v for k, v in environ.items() if not k.startswith("HTTP_IF_")}
        if what in (None, "deaf"):
            return inner(environ, start)
        if what in ("500", "403"):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return self._refuse(start, what, is_short=method == "HEAD")
        said: list[Any] = []
        body = b"".join(inner(environ, lambda *words: said.append(words)))
        if what == "forget" and said[0][0].startswith("200"):
            return self._refuse(start, "500")
        if what == "cut":
            start(*said[0])
            return [body[: len(body) // 2]]
        start(*said[0])
        return [body]

    def _refuse(self, start: Any, status: str, *, is_short: bool = False) -> list[bytes]:
        code = {"500": "InternalError", "403": "AccessDenied"}[status]
        text = f"<Error><Code>{code}</Code><Message>the door says {code}</Message></Error>"
        start(
            f"{status} {code}", [("Content-Type", "text/xml"), ("Content-Length", str(len(text)))]
        )
        return [] if is_short else [text.encode()]


@contextmanager
def opened_door() -> Iterator[Door]:
    """Serve the objects that the server of the tests has, through a door."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    door = Door()
    inner = DomainDispatcherApplication(create_backend_app)
    server = make_server(
        "127.0.0.1", 0, lambda environ, start: door.answer(inner, environ, start), threaded=True
    )
    door.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield door
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
