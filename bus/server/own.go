package server

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// lookUpIn bounds the lookup of a name.
const lookUpIn = time.Second

// own reports whether a route leads to this server, by its listen address, an address of this machine, or its
// name.
func (c *Cluster) own(route string) bool {
	if route == c.Listen {
		return true
	}
	host, port, err := splitAddress(route, suchRoute)
	if err != nil {
		return false
	}
	at, mine, err := splitAddress(c.Listen, suchRoute)
	if err != nil || port != mine {
		return false
	}
	if ip, err := netip.ParseAddr(at); at != "" && (err != nil || !ip.IsUnspecified()) {
		listens := lookUp(at)
		return slices.ContainsFunc(lookUp(host), func(a netip.Addr) bool { return slices.Contains(listens, a) })
	}
	if name, err := os.Hostname(); err == nil && strings.HasPrefix(host+".", name+".") {
		return true // its address may be unknown before the broker is ready
	}
	here, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(lookUp(host), func(a netip.Addr) bool {
		return slices.ContainsFunc(here, func(h net.Addr) bool {
			p, err := netip.ParsePrefix(h.String())
			return err == nil && p.Addr().Unmap() == a
		})
	})
}

// lookUp returns the addresses of a host; none: the name is unknown, or the lookup takes too long.
func lookUp(host string) (all []netip.Addr) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpIn)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range found {
		all = append(all, ip.Unmap())
	}
	return all
}
