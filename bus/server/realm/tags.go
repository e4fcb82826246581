package realm

import (
	"encoding/hex"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/access"
)

// RoleTag begins the tag of a user's claims that says his role: servers repeat it
// when they tell of their clients.
const RoleTag = "role:"

// What begins the tags that say which pools a worker's credentials are for. Tags are
// made lower case where they are handled, and pools differ by case: one whose token
// would not be the same any more is written in hex. The others are not, because the
// claims have to fit into the line by which a client connects.
const (
	poolTag    = "pool:"
	poolHexTag = "poolx:"
)

// tags are what servers repeat of a grant. What else they tell of a client may be of
// its own choice; the tags are those of the claims by which it was let in.
func tags(g access.Grant) []string {
	all := []string{RoleTag + string(g.Role)}
	for _, pool := range g.Pools {
		all = append(all, tagOf(pool))
	}
	return all
}

// tagOf is the tag of a pool.
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

// PoolsOf returns the pools that tags name, and whether they are for all pools. Tags
// that cannot be read name none.
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

// named is the pool that a tag names; empty: none.
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
