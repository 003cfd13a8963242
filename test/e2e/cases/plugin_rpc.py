"""The kubelet's calls to the plugin, made by a test: the wire format is small enough to write down."""

import glob

import grpc

from npunode.cluster import PLUGIN_DIRECTORY

SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"


def prepare(namespace, uid, name, timeout=45):
    """NodePrepareResources for one claim; the error text of the answer ("" if prepared)."""
    claim = b"".join(_field(number, text.encode()) for number, text in ((1, namespace), (2, uid), (3, name)))
    sockets = glob.glob(f"{PLUGIN_DIRECTORY}/*.sock")
    assert len(sockets) == 1, f"one DRA socket expected, found {sockets}"
    with grpc.insecure_channel(f"unix:{sockets[0]}") as channel:
        call = channel.unary_unary(SERVICE + "NodePrepareResources", request_serializer=None,
                                   response_deserializer=None)
        answer = call(_field(1, claim), timeout=timeout)
    entry = dict(_fields(dict(_fields(answer))[1]))  # map<uid, response>
    assert entry[1].decode() == uid
    return dict(_fields(entry.get(2, b""))).get(2, b"").decode()


def _field(number, content):
    """A length-delimited field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value):
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def _fields(data):
    position = 0
    while position < len(data):
        number, length, shift = data[position] >> 3, 0, 0
        assert data[position] & 7 == 2, "only length-delimited fields are expected"
        position += 1
        while True:
            byte = data[position]
            length |= (byte & 127) << shift
            position, shift = position + 1, shift + 7
            if byte < 128:
                break
        yield number, data[position:position + length]
        position += length
