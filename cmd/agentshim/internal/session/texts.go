package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// textRoom is the space for the sentence that names the file with the rest of a text.
const textRoom = 1024

// shorten replaces texts that are too long for the runtime by their beginning and the name of a file.
// Otherwise the runtime would cut them, and the fabric would count them as delivered.
func (x *Exchange) shorten(c *dialect.Call, v *schema.Verdict) {
	longest := c.Moment.Longest
	if longest == 0 {
		return
	}
	v.Reason = cut(v.Reason, longest)
	if c.Event.HookType == schema.BeforeFinalResponse && v.Decision == schema.Retry {
		longest = max(0, longest-len(v.Reason)-2) // the runtime gets both as one text
	}
	texts := make([]string, len(v.Injections))
	for i := range v.Injections {
		texts[i] = v.Injections[i].Content
	}
	text := strings.Join(texts, "\n\n")
	if len(text) <= longest {
		return
	}
	path, err := x.write(c, text)
	if err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: a text has %d bytes, this runtime passes on %d, and writing the text to a file failed: %v\n",
			len(text), longest, err)
		return
	}
	head := prefix(text, max(0, longest-textRoom))
	first := v.Injections[0]
	first.Content = fmt.Sprintf("%s\n\n[This text has %d bytes. This is more than can be shown here. The file %s has the full text. Read that file before you continue.]",
		head, len(text), path)
	v.Injections = []schema.Injection{first}
}

// write writes a text to a file beside the workspaces, where the agent may read, until the session ends.
func (x *Exchange) write(c *dialect.Call, text string) (path string, err error) {
	dir := x.workspaces(c)
	if dir == "" {
		return "", fmt.Errorf("there is no folder for it; name one with --workspaces")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if dir, err = snapshot.MakeOthers(dir); err != nil {
		return "", err // a repository may have a link there
	}
	sweepTexts(dir, func(_ string, age time.Duration) bool { return age > textsFor })
	path = filepath.Join(dir, textName(c.Event.SessionID, text))
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(text)) {
		return path, nil
	}
	return path, shimstate.Replace(path, []byte(text))
}

// cut returns text, cut off at the length that the runtime passes on.
func cut(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	return prefix(text, max(0, longest-len("…"))) + "…"
}

// prefix returns the longest prefix of text of at most n bytes that splits no character.
func prefix(text string, n int) string {
	if n >= len(text) {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// textsFor is how long the files of a session that never ends stay, and textPrefix begins their names.
const (
	textsFor   = 7 * 24 * time.Hour
	textPrefix = "text-"
)

// textName returns the name of the file for a text of a session. The same text has the same name.
func textName(session, text string) string { return sessionPrefix(session) + short(text) + ".txt" }

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

// sweepTexts deletes the files of a folder that over selects, and reports whether there is such a folder, not
// a link.
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
