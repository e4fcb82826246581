package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/schema"
)

var errNoFolder = errors.New("there is no folder for workspaces of other agents here; name one with --workspaces")

// unpack unpacks the workspaces that texts of b name, and replaces their paths in the
// texts. An error replaces a path.
func (c *Client) unpack(ctx context.Context, m delivery, b *bundle) {
	var there []schema.Workspace
	places := map[string]string{}
	for _, w := range b.workspaces {
		if w.Path == "" || !b.contains(w.Path, strings.Contains) {
			continue
		}
		path, err := c.place(ctx, m, w)
		if err != nil {
			c.log.Warn("a workspace is not available", "agent", m.agent, "workspace", w.Name, "error", err)
			places[w.Path] = fmt.Sprintf("(workspace unavailable: %v)", err)
			continue
		}
		places[w.Path] = path
		w.Path = path
		there = append(there, w)
	}
	b.workspaces = there
	if !b.contains(schema.WorkspacePath(""), strings.Contains) {
		return
	}
	b.rewrite(func(text string) string {
		return workspacePath().ReplaceAllStringFunc(text, func(path string) string {
			if place, ok := places[path]; ok {
				return place
			}
			return cmp.Or(unpackedBefore(m.workspaces, strings.TrimPrefix(path, schema.WorkspacePath(""))), path)
		})
	})
}

// workspacePath returns the expression for the path of a workspace in a text, with the folder's whole name. It compiles it on
// first use: `agentshim hook` starts once per tool call, and most calls need none.
var workspacePath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(schema.WorkspacePath("")) + `[A-Za-z0-9_-]+`)
})

// unpackedBefore returns the folder of an agent whose files came with an earlier text;
// empty: they did not.
func unpackedBefore(workspaces, name string) string {
	others, err := filepath.Abs(filepath.Join(workspaces, snapshot.Others))
	if err != nil || workspaces == "" {
		return ""
	}
	for _, dir := range []string{others, filepath.Join(others, name)} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return ""
		}
	}
	return filepath.Join(others, name)
}

// place unpacks one workspace and returns its folder. It returns in time even if the disk
// hangs.
func (c *Client) place(ctx context.Context, m delivery, w schema.Workspace) (string, error) {
	switch {
	case m.workspaces == "":
		return "", errNoFolder
	case !named(w.Name):
		return "", fmt.Errorf("%.64q is not a workspace name", w.Name)
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

// install makes dir equal to the snapshot. It fetches the snapshot only if dir differs
// and no other process installs it.
func (c *Client) install(ctx context.Context, m delivery, o schema.Object, dir string) error {
	if _, err := snapshot.MakeOthers(filepath.Dir(filepath.Dir(dir))); err != nil {
		return err
	}
	if snapshot.Holds(dir, o.Digest) {
		return nil
	}
	err := snapshot.UnpackOnce(ctx, c.object(ctx, m, o), dir, o.Digest)
	if err == nil {
		c.log.Info("a workspace of another agent was unpacked", "agent", m.agent, "folder", dir, "bytes", o.Size, "digest", o.Digest)
	}
	return err
}

// named reports whether name can be a folder's: letters, digits, _ and hyphens, as in the
// labels of answers.
func named(name string) bool {
	return len(name) <= 64 && workspacePath().FindString(schema.WorkspacePath(name)) == schema.WorkspacePath(name)
}
