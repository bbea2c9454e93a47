"""One control-plane node of OpenShift, as far as a hand-over of etcd sees it.

The API server answers over TLS from what is in etcd, and fails when etcd does. The etcd operator puts its static pod
back as long as etcd is the cluster's; told that it is external it takes etcd out of the pods, one node after the
other, and needs the API for each. Kubelet runs what the manifest says.
"""

import json
import os
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NODE, FIRST = sys.argv[1:3]
MANIFEST = "/etc/kubernetes/manifests/etcd-pod.yaml"
WITH_ETCD = "kind: Pod\ncontainers: [etcdctl, etcd-metrics, etcd]\n"
WITHOUT = "kind: Pod\ncontainers: [etcdctl, etcd-metrics]\n"
TOPOLOGY = "/apis/config.openshift.io/v1/infrastructures/cluster"
CONFIG = "/api/v1/namespaces/openshift-etcd-operator/configmaps/etcd-operator-config"
PAUSE_S = 0.3


def etcdctl(*words):
    environment = dict(os.environ, ETCDCTL_API="3")
    done = subprocess.run(
        ["etcdctl", "--command-timeout=2s", *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def stored(key):
    text = etcdctl("get", "--print-value-only", key)
    return json.loads(text) if text.strip() else None


def say(text):
    print(f"{NODE}: {text}", flush=True)


def write(text):
    os.makedirs(os.path.dirname(MANIFEST), exist_ok=True)
    with open(MANIFEST + ".new", "w") as file:
        file.write(text)
    os.rename(MANIFEST + ".new", MANIFEST)


def manifest():
    try:
        with open(MANIFEST) as file:
            return file.read()
    except FileNotFoundError:
        return None


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        with open("/root/token") as file:
            token = file.read().strip()
        if self.headers.get("Authorization") != f"Bearer {token}":
            return self.answer(401, {"message": "Unauthorized"})
        if self.path not in (TOPOLOGY, CONFIG):
            return self.answer(403, {"message": "forbidden"})
        try:
            value = stored(self.path)
            if self.command == "PATCH":
                patch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                value["data"].update(patch["data"])
                etcdctl("put", self.path, json.dumps(value))
                say(f"told {patch['data']}")
            return self.answer(200, value)
        except subprocess.CalledProcessError as error:
            return self.answer(500, {"message": error.stderr.strip()[-200:]})

    do_GET = do_PATCH = handle_request


def operate():
    """One look of the operator."""
    kind = stored(CONFIG)["data"].get("managedEtcdKind", "Cluster")
    there = manifest()
    if kind == "Cluster" and there != WITH_ETCD:
        say("the operator puts etcd's pod back")
        write(WITH_ETCD)
    elif kind == "External" and there != WITHOUT:
        if NODE != FIRST and not etcdctl("get", "--print-value-only", f"/rolled-out/{FIRST}").strip():
            return
        say("the operator takes etcd out of the pod")
        write(WITHOUT)
    elif kind == "External":
        etcdctl("put", f"/rolled-out/{NODE}", "yes")


def operator():
    while True:
        try:
            operate()
        except (subprocess.CalledProcessError, TypeError):
            pass
        time.sleep(PAUSE_S)


def kubelet():
    while True:
        wanted = manifest() == WITH_ETCD
        runs = subprocess.run(["systemctl", "is-active", "--quiet", "static-etcd"]).returncode == 0
        if wanted and not runs:
            unit = ["systemd-run", "--quiet", "--collect", "--unit=static-etcd"]
            subprocess.run([*unit, "--property=EnvironmentFile=/etc/default/etcd", "/usr/bin/etcd"])
        elif runs and not wanted:
            subprocess.run(["systemctl", "stop", "static-etcd"])
        time.sleep(PAUSE_S)


write(WITH_ETCD)
for work in (operator, kubelet):
    threading.Thread(target=work, daemon=True).start()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/root/api.pem", "/root/api.key")
server = ThreadingHTTPServer(("127.0.0.1", 6443), Api)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
