package session

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// textsFor is how long the files of a session that never ends stay, and textPrefix is the prefix of the names of all
// files with long texts.
const (
	textsFor   = 7 * 24 * time.Hour
	textPrefix = "text-"
)

// textName returns the name of the file for a text of a session. The same text has the same name.
func textName(session, text string) string {
	return sessionPrefix(session) + short(text) + ".txt"
}

func sessionPrefix(session string) string { return textPrefix + short(session) + "-" }

func short(s string) string {
	digest := sha256.Sum256([]byte(s))
	return hex.EncodeToString(digest[:8])
}

// dropTexts deletes the files with long texts of a session that ends, so that none stays in the agent's project.
func (x *Exchange) dropTexts(c *dialect.Call) {
	dir := x.workspaces(c)
	if c.Event.HookType != schema.SessionEnd || c.Event.SessionID == "" || dir == "" {
		return
	}
	dir = filepath.Join(dir, snapshot.Others)
	prefix := sessionPrefix(c.Event.SessionID)
	if sweepTexts(dir, func(name string, _ time.Duration) bool { return strings.HasPrefix(name, prefix) }) {
		_ = os.Remove(dir) // if nothing else is in it
	}
}

// sweepTexts deletes the files with long texts in a folder that over selects by name and age. It follows no link, and
// reports whether the folder exists.
func sweepTexts(dir string, over func(name string, age time.Duration) bool) bool {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer root.Close()
	base := filepath.Base(dir)
	if info, err := root.Lstat(base); err != nil || !info.IsDir() {
		return false
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, f := range files {
		name := f.Name()
		if !f.Type().IsRegular() || !strings.HasPrefix(name, textPrefix) || filepath.Ext(name) != ".txt" {
			continue
		}
		if info, err := f.Info(); err == nil && over(name, time.Since(info.ModTime())) {
			_ = root.Remove(filepath.Join(base, name))
		}
	}
	return true
}
