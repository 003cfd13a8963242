"""The Kubernetes API over one kept-alive connection: quick enough to be polled."""

import http.client
import json
import ssl


class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(f"API server: {code}: {message}")
        self.code = code


class Api:
    def __init__(self, kubeconfig):
        with open(kubeconfig) as file:
            config = json.load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._address = cluster["server"].removeprefix("https://")
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._connection = None

    def get(self, path):
        """The object, or None if it does not exist."""
        try:
            return self.request("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def create(self, path, body):
        return self.request("POST", path, body)

    def merge(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path, grace_seconds=None):
        """Asks for the deletion; what is already gone is fine."""
        query = "" if grace_seconds is None else f"?gracePeriodSeconds={grace_seconds}"
        try:
            return self.request("DELETE", path + query)
        except ApiError as error:
            if error.code != 404:
                raise

    def text(self, path):
        return self._send("GET", path, None, None).decode(errors="replace")

    def request(self, method, path, body=None, content_type="application/json"):
        return json.loads(self._send(method, path, body, content_type))

    def _send(self, method, path, body, content_type):
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if data else {}
        for attempt in (1, 2):
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(self._address, context=self._context, timeout=30)
            try:
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                content = response.read()
                break
            except (http.client.HTTPException, OSError):
                self._connection = None  # the server may have closed an idle connection
                if attempt == 2:
                    raise
        if response.status >= 400:
            try:
                message = json.loads(content)["message"]
            except (ValueError, KeyError):
                message = content.decode(errors="replace")
            raise ApiError(response.status, message)
        return content
