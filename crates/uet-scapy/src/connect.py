class UET(UETHeader):
    """Dissects a packet from its first UET header on: UET(b"...") is of the class of that header."""

    @classmethod
    def dispatch_hook(cls, _pkt=None, *args, **kargs):
        if not _pkt:
            return cls
        kind = _pkt[0] >> 3
        if kind == UETTss.type_of_new:
            found = UETTssSsi if _pkt[0] & 4 else UETTss
        else:
            found = PDS_HEADERS.get(kind, UETPrologue)
        trailer = _trailer()
        return found if len(_pkt) >= found.length + (trailer.length if trailer else 0) else Raw


class UETNative(UETHeader):
    """Dissects a packet that follows IP directly."""

    @classmethod
    def dispatch_hook(cls, _pkt=None, *args, **kargs):
        return UETEntropy if len(_pkt or b"") >= UETEntropy.length else Raw


UETTss.type_of_new = UETTss().type
_trailers = {"none": None, "crc": UETCrc, "icv": UETIcv}


def _trailer():
    """Returns the class of the configured trailer."""
    return _trailers[conf.contribs["UET"]["trailer"]]


def _extension(header, payload):
    if header.opcode in RENDEZVOUS_OPCODES:
        return UETRendezvous
    if header.opcode in ATOMIC_OPCODES:
        return UETCompareSwap if payload[:1] and payload[0] in COMPARE_AND_SWAP else UETAtomic
    return None


def _connect():
    UETEntropy.announced = lambda header, payload: UET.dispatch_hook(payload)
    delivery = set(PDS_HEADERS.values())
    for header in delivery - {UETControl, UETPrologue}:
        header.announced = lambda header, payload: SES_HEADERS.get(header.next_hdr)
        for code, following in SES_HEADERS.items():
            bind_top_down(header, following, next_hdr=code)
    for header in SES_HEADERS.values():
        if header in (UETSmall, UETMedium, UETStd):
            header.announced = _extension
            bind_top_down(header, UETRendezvous, opcode=RENDEZVOUS_OPCODES[0])
            bind_top_down(header, UETAtomic, opcode=ATOMIC_OPCODES[0])
            bind_top_down(header, UETCompareSwap, opcode=ATOMIC_OPCODES[0])
    for header in delivery | {UETTss, UETTssSsi}:
        # The source port spreads packets over paths. Scapy's own default is the port of DNS.
        bind_top_down(UDP, header, sport=0xC000, dport=UDP_PORT)
        bind_top_down(UETEntropy, header)
    bind_top_down(IP, UETEntropy, proto=IP_PROTO)
    bind_top_down(IPv6, UETEntropy, nh=IP_PROTO)


def _bind(udp_port, ip_proto):
    """Makes these numbers mean UET, before any other protocol that a source port may announce."""
    for lower, layer, numbers in _bound:
        split_bottom_up(lower, layer, **numbers)
    _bound[:] = [(UDP, UET, {"dport": udp_port}), (IP, UETNative, {"proto": ip_proto}), (IPv6, UETNative, {"nh": ip_proto})]
    for lower, layer, numbers in _bound:
        lower.payload_guess.insert(0, (numbers, layer))


_bound = []
_connect()
_bind(UDP_PORT, IP_PROTO)


def uet_settings(udp_port=UDP_PORT, ip_proto=IP_PROTO, trailer="none"):
    """Sets the UDP port and the IP protocol number that mean UET, and the trailer: "none", "crc" or "icv".

    New packets keep the default numbers: set dport, proto or nh in them.
    """
    if trailer not in _trailers:
        raise ValueError("trailer must be one of " + ", ".join(_trailers))
    for name, number, most in ("udp_port", udp_port, 0xFFFF), ("ip_proto", ip_proto, 0xFF):
        if not isinstance(number, int) or not 0 <= number <= most:
            raise ValueError(f"{name} must be a number from 0 to {most}")
    _bind(udp_port, ip_proto)
    conf.contribs["UET"]["trailer"] = trailer


def uet_fields(packet):
    """Returns the fields of the UET headers by the names that `uet decode` uses: {"pds.psn": 7, ...}."""
    fields = {}
    for layer in packet.iterpayloads():
        for name, canonical in getattr(layer, "canonical", {}).items():
            field = layer.get_field(name)
            if not isinstance(field, ConditionalField) or field.cond(layer):
                fields[canonical] = layer.getfieldval(name)
    return fields


def uet_crc32c(data):
    """Returns the CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def uet_with_crc(packet):
    """Returns a copy of the packet with its CRC trailer.

    The CRC covers all bytes from the IP source address on. It therefore needs a UDP checksum of 0.
    """
    packet = packet / UETCrc()
    if UDP in packet:
        packet[UDP].chksum = 0
    ip = packet[IP] if IP in packet else packet[IPv6]
    covered = bytes(ip)[12 if ip.version == 4 else 8:-UETCrc.length]
    packet[UETCrc].crc = uet_crc32c(covered)
    return packet
