package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server"
)

// The store was deleted, or emptied, and the rest of the directory is that of a first start.
func TestAServerDoesNotStartIfItsStoreWasDeleted(t *testing.T) {
	t.Parallel()
	left := t.TempDir()
	s := fill(t, left)
	killed := t.TempDir()
	waitForLasts(t, left)
	waitForAccounts(t, left, "$G\n")
	copyTree(t, left, killed)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for how, from := range map[string]string{"stopped": left, "killed": killed} {
		for _, gone := range []string{"nats", "nats/jetstream", "nats/jetstream/$G", "nats/jetstream/$G/*"} {
			t.Run(how+", without "+gone, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				copyTree(t, from, dir)
				paths, err := filepath.Glob(filepath.Join(dir, gone))
				if err != nil || len(paths) == 0 {
					t.Fatalf("there is no %s, %v", gone, err)
				}
				for _, path := range paths {
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
				}
				accounts := filepath.Join(dir, "accounts")
				for range 2 {
					_, err := server.Start(t.Context(), server.Options{Dir: dir})
					wantError(t, err, filepath.Join(dir, "nats", "jetstream", "$G")+" is missing, and with it all stored hooks")
					wantError(t, err, "restore the data directory from a backup; or, to start without this data, delete the line $G in "+accounts)
				}
				if err := os.WriteFile(accounts, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				mustStart(t, dir)
			})
		}
	}
}

// A realm that was made before the first start does not mean that a store was lost, and neither does a tenant that
// gets the streams from before the realm.
func TestAFirstStartNeedsNoStore(t *testing.T) {
	t.Parallel()
	auth := newRealm(t)
	start := func(dir, auth string) error {
		s, err := server.Start(t.Context(), server.Options{Dir: dir, Auth: auth})
		if err != nil {
			return err
		}
		return s.Close(context.Background())
	}
	dir := t.TempDir()
	for range 2 { // one that stored nothing starts again without a store, too
		if err := errors.Join(start(dir, auth), os.RemoveAll(filepath.Join(dir, "nats"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := fill(t, dir).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // $G becomes the tenant's
		if err := start(dir, auth); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	wantError(t, start(dir, auth), "is missing, and with it all stored hooks")
}

// TestAStoreThatIsGoneIsNotStartedAgain on a running server, whose disk was emptied.
func TestAStoreThatIsGoneIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fill(t, dir)
	waitForAccounts(t, dir, "$G\n")
	if err := os.Rename(filepath.Join(dir, "nats"), filepath.Join(dir, "aside")); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Mend(), "is missing, and with it all stored hooks")
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "nats")), os.Rename(filepath.Join(dir, "aside"), filepath.Join(dir, "nats")), s.Mend()); err != nil {
		t.Error(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
