"""A small S3 server on loopback that keeps its objects in memory: enough for what pyarrow sends."""

import contextlib
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @property
    def place(self):
        """The key, with the bucket in front, and the parameters of the request."""
        url = urlsplit(self.path)
        values = parse_qs(url.query, keep_blank_values=True)
        return unquote(url.path).lstrip("/"), {name: value[0] for name, value in values.items()}

    def content(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        key, values = self.place
        objects = self.server.objects
        if "list-type" in values:
            prefix = values.get("prefix", "")
            keys = sorted(k.partition("/")[2] for k in objects if k.startswith(f"{key.rstrip('/')}/{prefix}"))
            entries = "".join(
                f"<Contents><Key>{escape(k)}</Key><Size>{len(objects[f'{key}/{k}'])}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                for k in keys
            )
            count = f"<KeyCount>{len(keys)}</KeyCount><IsTruncated>false</IsTruncated>"
            self.answer(200, f"<ListBucketResult>{count}{entries}</ListBucketResult>".encode())
        elif key in objects or "/" not in key.rstrip("/"):
            data = objects.get(key, b"")
            span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
            part = data[int(span[1]) : int(span[2]) + 1] if span else data
            self.answer(206 if span else 200, part, ETag='"e"', Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")
        else:
            self.answer(404)

    def do_PUT(self):
        key, values = self.place
        if "partNumber" in values:
            self.server.parts.setdefault(values["uploadId"], {})[int(values["partNumber"])] = self.content()
        else:
            self.server.objects[key] = self.content()
        self.answer(200, ETag='"e"')

    def do_POST(self):
        key, values = self.place
        self.content()
        if "uploads" in values:
            number = f"<UploadId>{uuid.uuid4().hex}</UploadId>"
            text = f"<InitiateMultipartUploadResult>{number}</InitiateMultipartUploadResult>"
        else:
            parts = self.server.parts.pop(values["uploadId"])
            self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
            text = '<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>'
        self.answer(200, text.encode())


@contextlib.contextmanager
def object_store():
    """Start a server. Yield the environment variables by which clients find it, and its objects by bucket and key."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.objects, server.parts = {}, {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # otherwise content is sent in signed chunks
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        yield variables, server.objects
    finally:
        server.shutdown()
        server.server_close()
