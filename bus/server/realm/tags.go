package realm

import (
	"encoding/hex"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/access"
)

// RoleTag begins the tag of a user's claims with the role. Servers repeat tags in events about clients.
const RoleTag = "role:"

// The prefixes of the tags with a worker's pools. Tags are converted to lower case, and the names of pools
// are case-sensitive, so names with upper case are written in hex. Others are not, because the claims must fit
// into the CONNECT line.
const (
	poolTag    = "pool:"
	poolHexTag = "poolx:"
)

// tags returns the tags of a grant. Servers verify them with the claims, unlike other fields of a client.
func tags(g access.Grant) []string {
	all := []string{RoleTag + string(g.Role)}
	for _, pool := range g.Pools {
		all = append(all, tagOf(pool))
	}
	return all
}

// tagOf returns the tag of a pool.
func tagOf(pool string) string {
	token, err := bus.Token(pool)
	switch {
	case pool == access.Everyone:
		return poolTag + access.Everyone
	case err != nil || token != strings.ToLower(token):
		return poolHexTag + hex.EncodeToString([]byte(pool))
	}
	return poolTag + token
}

// PoolsOf returns the pools of tags, and whether they are for all pools. It ignores malformed tags.
func PoolsOf(tags []string) (pools []string, all bool) {
	for _, tag := range tags {
		if tag == poolTag+access.Everyone {
			return nil, true
		}
		if pool := named(tag); pool != "" {
			pools = append(pools, pool)
		}
	}
	return pools, false
}

// named returns the pool of a tag; empty: the tag names no pool.
func named(tag string) string {
	if token, ok := strings.CutPrefix(tag, poolTag); ok {
		pool, err := bus.ParseToken(token)
		if err != nil {
			return ""
		}
		return pool
	}
	digits, ok := strings.CutPrefix(tag, poolHexTag)
	pool, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return ""
	}
	return string(pool)
}
