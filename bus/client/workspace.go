package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/schema"
)

var errNoFolder = errors.New("there is no folder for workspaces of other agents here")

// unpack puts the workspaces that texts of b name where the agent can read them,
// and their paths into the texts. What fails is said there.
func (c *Client) unpack(ctx context.Context, m moment, b *bundle) {
	if len(b.workspaces) == 0 {
		return
	}
	var there []schema.Workspace
	var pairs [][2]string
	for _, w := range b.workspaces {
		if w.Path == "" || !b.names(w.Path, strings.Contains) {
			continue
		}
		path, err := c.place(ctx, m, w)
		if err != nil {
			c.log.Warn("a workspace is not available", "agent", m.agent, "workspace", w.Name, "error", err)
			pairs = append(pairs, [2]string{w.Path, fmt.Sprintf("(workspace unavailable: %v)", err)})
			continue
		}
		pairs = append(pairs, [2]string{w.Path, path})
		w.Path = path
		there = append(there, w)
	}
	b.workspaces = there
	if len(pairs) == 0 {
		return
	}
	// A name may begin with another one: the longest counts.
	slices.SortStableFunc(pairs, func(x, y [2]string) int { return len(y[0]) - len(x[0]) })
	b.rewrite(strings.NewReplacer(flat(pairs)...).Replace)
}

func flat(pairs [][2]string) (all []string) {
	for _, p := range pairs {
		all = append(all, p[0], p[1])
	}
	return all
}

// place unpacks one workspace and returns where it is. It comes back in time,
// even if the disk does not.
func (c *Client) place(ctx context.Context, m moment, w schema.Workspace) (string, error) {
	switch {
	case m.workspaces == "":
		return "", errNoFolder
	case !named(w.Name):
		return "", fmt.Errorf("%.64q is no name of a workspace", w.Name)
	case w.Snapshot.Size > snapshot.MaxBytes+snapshot.MaxBytes/8:
		return "", fmt.Errorf("its snapshot has %d bytes", w.Snapshot.Size)
	}
	folder, err := filepath.Abs(m.workspaces)
	if err != nil {
		return "", err
	}
	done := make(chan error, 1)
	dir := filepath.Join(folder, snapshot.Others, w.Name)
	go func() { done <- c.install(ctx, m, w.Snapshot, dir) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = errLate
	}
	if err != nil {
		return "", err
	}
	return dir, nil
}

// install makes dir what the snapshot holds. It is fetched only if dir does not
// hold it already, and no other process is about to see to that.
func (c *Client) install(ctx context.Context, m moment, o schema.Object, dir string) error {
	if err := parent(filepath.Dir(dir)); err != nil {
		return err
	}
	return snapshot.UnpackOnce(ctx, c.object(ctx, m, o), dir, o.Digest)
}

// parent makes the folder of all workspaces. A link in its place would lead out
// of where it should be.
func parent(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	return err
}

// named reports whether name can be a folder's: letters, digits and hyphens.
func named(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
