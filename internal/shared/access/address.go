package access

import (
	"net/netip"
	"strings"
)

// notPublic lists prefixes of RFC 6890 that netip does not recognize.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("fec0::/10"),
}

// embedded lists IPv6 prefixes with an IPv4 address inside, and its first byte.
var embedded = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2}

// IsPublic reports whether an address belongs to the Internet: neither private, loopback, link-local nor reserved.
func IsPublic(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsValid() || address.IsPrivate() || !address.IsGlobalUnicast() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(address) {
			return false
		}
	}
	for prefix, at := range embedded {
		if prefix.Contains(address) {
			bytes := address.As16()
			return IsPublic(netip.AddrFrom4([4]byte(bytes[at : at+4])))
		}
	}
	return true
}

// isPrivateHost reports whether a name alone is not on the Internet: an address that is not public, localhost, or a name without
// a dot.
func isPrivateHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return !IsPublic(address)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".")
}
