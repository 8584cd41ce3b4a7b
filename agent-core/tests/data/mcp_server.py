"""A server of tools for tests: over stdin and stdout, or over HTTP with the argument `http`. Other arguments make it odd."""
import json, subprocess, sys, time

WAYS = sys.argv[1:]
TOOLS = [
    {"name": "echo", "description": "Says it again", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "look", "description": "Looks", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "much", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
]
LATE = {"name": "late", "inputSchema": {"type": "object"}}
listed = 0


def result(message, token=""):
    global listed
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "test", "version": "1"}}
    if method == "tools/list":
        listed += 1
        return {"tools": TOOLS + [LATE] * (listed > 1)}
    if method == "tools/call":
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "wait":
            time.sleep(30)
        if name == "die":
            sys.exit(3)
        text = {"fail": "it failed", "much": "x" * 100000}.get(name, (arguments.get("text", "looked") + token))
        return {"content": [{"type": "text", "text": text}], "isError": name == "fail"}
    return {}


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def pipes():
    if "junk" in WAYS:
        print("this is no protocol")
        sys.exit(1)
    if "leaves-a-child" in WAYS:
        subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for line in sys.stdin:
        message = json.loads(line)
        if "mute" in WAYS or "id" not in message:
            continue
        say({"jsonrpc": "2.0", "id": message["id"], "result": result(message)})
        if message.get("method") == "tools/list" and "grows" in WAYS and listed == 1:
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, body=b""):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(405)

        def do_DELETE(self):
            self.answer(200)

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message:
                return self.answer(202)
            token = " " + self.headers.get("x-token", "")
            self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result(message, token)}).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever()


http() if "http" in WAYS else pipes()
