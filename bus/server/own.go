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

// lookUpIn bounds how long the addresses of a name are looked up.
const lookUpIn = time.Second

// own reports whether a route leads to this server, as far as that can be told: by
// the address that it listens on, by an address of this machine, or by its name.
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
		return true // its address may not be known yet, as where the broker must be ready first
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

// lookUp are the addresses of a host; none: nobody knows it, or not soon.
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
