package realm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"

	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// issued are the tags of a worker's claims, as a server reads them.
func issued(t *testing.T, pools ...string) []string {
	t.Helper()
	var token string
	worker := access.Grant{Role: access.Worker, Pools: pools}
	_, err := realm.Add(t.Context(), made(t), realm.Issue{Name: "w", Grant: worker}, func(creds []byte) (err error) {
		token, err = jwt.ParseDecoratedJWT(creds)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	return claims.Tags
}

func TestTagsNameThePoolsOfAWorker(t *testing.T) {
	pools := []string{"guard", "Guard", "a.b", "tör", "_", "pool:x", "6c", "ends "}
	tags := issued(t, pools...)
	for _, tag := range tags {
		if tag != strings.ToLower(strings.TrimSpace(tag)) {
			t.Errorf("the tag %q does not survive being handled", tag)
		}
	}
	if got, all := realm.PoolsOf(tags); all || !slices.Equal(got, pools) {
		t.Errorf("%q name %q, all: %t", tags, got, all)
	}
	if got, all := realm.PoolsOf(issued(t, access.Everyone)); !all || len(got) > 0 {
		t.Errorf("all pools are %q, all: %t", got, all)
	}
}

func TestTagsThatNameNoPool(t *testing.T) {
	for _, tag := range []string{"", "role:worker", "pool:", "poolx:", "poolx:2", "poolx:no", "pool:_", "pool:a*", "poolx", "Pool:a"} {
		if got, all := realm.PoolsOf([]string{tag}); all || len(got) > 0 {
			t.Errorf("%q names %q, all: %t", tag, got, all)
		}
	}
}
