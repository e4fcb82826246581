package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// accountsFile lists the accounts with streams, one per line, in the data directory. It is outside the store,
// so that a store that was deleted differs from a new one.
const accountsFile = "accounts"

// checkStored rejects a store with missing or damaged parts. In a cluster the whole store may be missing,
// because the other servers have copies.
func (s *Server) checkStored(ctx context.Context, store string) error {
	if s.cluster == nil {
		if err := checkAccounts(s.dir, store); err != nil {
			return err
		}
	}
	return s.remedied(checkStore(ctx, store))
}

// checkAccounts rejects a store that lacks an account with streams.
func checkAccounts(dir, store string) error {
	accounts, err := readAccounts(dir)
	if err != nil {
		return err
	}
	for _, account := range accounts {
		folder := filepath.Join(store, account)
		if there, err := hasStreams(folder); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		return fmt.Errorf("%s is missing, and with it all stored hooks, freezes, rounds and messages; restore the data directory from a backup; "+
			"or, to start without this data, delete the line %s in %s", folder, account, filepath.Join(dir, accountsFile))
	}
	return nil
}

// hasStreams reports whether an account's folder has streams, or the file with their last sequences, with
// which [checkAccount] finds missing streams.
func hasStreams(account string) (bool, error) {
	noted, err := readLasts(account)
	if err != nil || noted != nil {
		return noted != nil, err
	}
	streams, err := os.ReadDir(filepath.Join(account, "streams"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(streams) > 0, err
}

// readAccounts returns the accounts that had streams; none: the directory is new, or of an earlier release.
func readAccounts(dir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, accountsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.Fields(string(data)), nil
}

// writeAccounts adds the accounts that have streams, and removes those that no longer have any. It keeps
// accounts that the server does not know.
func (n *sequenceLog) writeAccounts(all map[string]lasts) error {
	if all == nil {
		return nil
	}
	var with []string
	for account, streams := range all {
		if len(streams) > 0 {
			with = append(with, account)
		}
	}
	slices.Sort(with)
	if slices.Equal(with, n.accounts) {
		return nil
	}
	known, err := readAccounts(n.dir)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(known, func(account string) bool { _, seen := all[account]; return seen })
	lines := strings.Join(append(kept, with...), "\n") + "\n"
	if err := realm.WriteFile(filepath.Join(n.dir, accountsFile), []byte(lines)); err != nil {
		return err
	}
	n.accounts = with
	return nil
}
