package realm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

func TestRenewedCredentialsTakeThePlaceOfOldOnes(t *testing.T) {
	dir := made(t)
	i := agent("alice")
	i.For = 48 * time.Hour
	old, err := realm.Add(t.Context(), dir, i, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	if _, err := realm.Renew(t.Context(), dir, "", "alice", nil, func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if r := read(t, dir); len(r.Users) != 2 || r.Users[0].Revoked.IsZero() || !r.Users[1].Revoked.IsZero() {
		t.Fatalf("what could not be kept took the old ones away: %+v", r.Users)
	}
	next, err := realm.Renew(t.Context(), dir, "", "alice", nil, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if next.Key == old.Key || next.Role != old.Role || next.Agents[0] != "alice" || next.Expires.Sub(next.Issued) != i.For {
		t.Errorf("%+v", next)
	}
	for _, u := range read(t, dir).Users {
		if u.Revoked.IsZero() != (u.Key == next.Key) {
			t.Errorf("%+v", u)
		}
	}
	if forever, err := realm.Renew(t.Context(), dir, "", "alice", new(time.Duration), nowhere); err != nil || !forever.Expires.IsZero() {
		t.Errorf("%+v, %v", forever, err)
	}
	if _, err := realm.Revoke(t.Context(), dir, "", "alice"); err != nil {
		t.Fatal(err)
	}
	_, err = realm.Renew(t.Context(), dir, "", "alice", nil, nowhere)
	refused(t, err, "were revoked; create new ones with `broker creds add agent alice`")
	_, err = realm.Renew(t.Context(), dir, "", "bob", nil, nowhere)
	refused(t, err, "has no credentials with the name")
}

func TestCredentialsExpireSoon(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		lasts, left time.Duration
		want        bool
	}{
		"never":                          {0, 0, false},
		"a month, half of which is left": {30 * 24 * time.Hour, 15 * 24 * time.Hour, false},
		"a month, five days left":        {30 * 24 * time.Hour, 5 * 24 * time.Hour, true},
		"a year, two weeks left":         {365 * 24 * time.Hour, 14 * 24 * time.Hour, false},
		"an hour, just made":             {time.Hour, time.Hour, false},
		"an hour, ten minutes left":      {time.Hour, 10 * time.Minute, true},
		"over":                           {time.Hour, -time.Minute, false},
	} {
		u := realm.User{}
		if c.lasts > 0 {
			u.Expires = now.Add(c.left)
			u.Issued = u.Expires.Add(-c.lasts)
		}
		if got := u.Soon(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCredentialsHaveTheirTimes(t *testing.T) {
	dir, file := made(t), filepath.Join(t.TempDir(), "alice.creds")
	for _, lasts := range []time.Duration{48 * time.Hour, 0} {
		i := agent("alice")
		i.For = lasts
		u, err := realm.Add(t.Context(), dir, i, func(creds []byte) error { return os.WriteFile(file, creds, 0o600) })
		if err != nil {
			t.Fatal(err)
		}
		at, end, err := bus.CredsTimes(file)
		if err != nil || !end.Equal(u.Expires.Truncate(time.Second)) || lasts > 0 && end.Sub(at).Round(time.Minute) != lasts {
			t.Errorf("%v: %v to %v, %v; want %v", lasts, at, end, err, u.Expires)
		}
		if _, err := realm.Revoke(t.Context(), dir, "", "alice"); err != nil {
			t.Fatal(err)
		}
	}
	if _, end, err := bus.CredsTimes(""); err != nil || !end.IsZero() {
		t.Errorf("of no file: %v, %v", end, err)
	}
	if _, _, err := bus.CredsTimes(file + ".not"); err == nil {
		t.Error("of a file that is not there")
	}
}
