"""The server of webhook.yaml. It checks the signature and returns the JSON answer of a hook."""

import argparse
import hashlib
import hmac
import http.server
import json
import os
import time

KEY = os.environ["WEBHOOK_KEY"].encode()
TOLERANCE = 300  # seconds that the clocks may differ


def signed(headers, body):
    """Report whether the body was signed with the key within the last TOLERANCE seconds."""
    stamp = headers.get("Hook-Timestamp", "")
    digest = hmac.new(KEY, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(headers.get("Hook-Signature", ""), "v1=" + digest):
        return False
    return abs(time.time() - int(stamp)) <= TOLERANCE


def decide(event):
    """Return the answer to an event, or None for no opinion."""
    service, to = event["tool_input"].get("service"), event["tool_input"].get("to")
    if to == "production":
        return {"decision": "deny", "reason": f"{event['agent_id']} may not deploy {service} to {to}"}
    if not to:
        return {"decision": "ask", "reason": f"deploy {service} to where?"}
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keep connections open

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not signed(self.headers, body):
            return self.answer(401, {"error": "the request is not signed with the key of this server"})
        result = decide(json.loads(body))
        return self.answer(200, result) if result else self.answer(204)

    def answer(self, status, value=None):
        body = json.dumps(value).encode() if value else b""
        self.send_response(status)
        if value:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, default=8481)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", flags.parse_args().port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
