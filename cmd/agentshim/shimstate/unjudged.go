package shimstate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	unjudgedFile = "unjudged" // has one unjudged call per line
	maxUnjudged  = 1 << 20    // limits it, in bytes: some thousand calls
	maxText      = 256        // limits the free texts of a line, in bytes
)

// An UnjudgedLog has the unjudged calls for a fabric, or for a URL where no fabric answered yet.
type UnjudgedLog struct{ dir string }

// UnjudgedLog returns the log for a fabric, or for a URL if the fabric is empty.
func (f Folder) UnjudgedLog(fabric, url string) UnjudgedLog {
	dir, err := f.fabric(fabric)
	switch {
	case f == "":
		return UnjudgedLog{}
	case err != nil:
		return UnjudgedLog{f.reachedFile(url).path + ".d"}
	}
	return UnjudgedLog{dir}
}

// Add appends a call. If the log is full, it drops the oldest calls and counts them.
func (r UnjudgedLog) Add(u schema.Unjudged) error {
	if r.dir == "" {
		return errNoFolder
	}
	line, err := encodeUnjudged(&u)
	if err != nil {
		return err
	}
	return r.locked(func(path string) error {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file; delete it", path)
		}
		if err == nil && info.Size()+int64(len(line)) > maxUnjudged {
			if err := shorten(path, u.Agent); err != nil {
				return err
			}
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if torn(file) {
			line = append([]byte("\n"), line...) // the last writer died while it wrote
		}
		_, err = file.Write(line)
		return errors.Join(err, file.Close())
	})
}

// torn reports whether the last line of a file has no end.
func torn(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// encodeUnjudged returns the line of a call. It cuts long texts, so that no call displaces many others.
func encodeUnjudged(u *schema.Unjudged) ([]byte, error) {
	u.Session, u.Tool, u.Why = cut(u.Session, maxText), cut(u.Tool, maxText), cut(u.Why, schema.MaxWhy)
	if uuid.Validate(u.EventID) != nil || len(u.EventID) != len(uuid.Nil.String()) {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making an event id: %w", err)
		}
		u.EventID = id.String()
	}
	data, err := schema.Marshal(u)
	return append(data, '\n'), err
}

func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}

// Empty reports whether the log has no calls, with one system call.
func (r UnjudgedLog) Empty() bool {
	info, err := os.Stat(filepath.Join(r.dir, unjudgedFile))
	return r.dir == "" || err != nil || info.Size() == 0
}

// Oldest returns the oldest calls of the agent, or if it has none, of another one.
func (r UnjudgedLog) Oldest(agent string, most int) (calls []schema.Unjudged, err error) {
	if r.Empty() {
		return nil, nil
	}
	data, err := readUnjudged(filepath.Join(r.dir, unjudgedFile))
	if err != nil {
		return nil, err
	}
	all, faulty := parseUnjudged(data)
	if faulty > 0 {
		err = fmt.Errorf("dropped %d unreadable lines of %s", faulty, filepath.Join(r.dir, unjudgedFile))
	}
	if len(all) == 0 {
		return nil, errors.Join(err, r.drop(nil, agent))
	}
	if !slices.ContainsFunc(all, func(u schema.Unjudged) bool { return u.Agent == agent }) {
		agent = all[0].Agent
	}
	for _, u := range all {
		if u.Agent == agent && len(calls) < most {
			calls = append(calls, u)
		}
	}
	return calls, err
}

// Remove removes calls that were reported to a fabric.
func (r UnjudgedLog) Remove(calls []schema.Unjudged) error {
	if len(calls) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(calls))
	for i := range calls {
		ids[calls[i].EventID] = true
	}
	return r.drop(ids, calls[0].Agent)
}

// drop removes calls, and unreadable lines.
func (r UnjudgedLog) drop(ids map[string]bool, agent string) error {
	return r.locked(func(path string) error {
		data, err := readUnjudged(path)
		if err != nil {
			return err
		}
		all, faulty := parseUnjudged(data)
		all = slices.DeleteFunc(all, func(u schema.Unjudged) bool { return ids[u.EventID] })
		return rewrite(path, all, agent, faulty)
	})
}

// locked calls change while it holds the lock of the log.
func (r UnjudgedLog) locked(change func(path string) error) error {
	unlock, err := lockIn(filepath.Join(r.dir, ".unjudged.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return change(filepath.Join(r.dir, unjudgedFile))
}

// shorten drops the oldest quarter of the log, so that not each call must shorten it.
func shorten(path, agent string) error {
	data, err := readUnjudged(path)
	if err != nil {
		return err
	}
	all, lost := parseUnjudged(data)
	for size := len(data); size > maxUnjudged/4*3 && len(all) > 0; all = all[1:] {
		line, err := schema.Marshal(&all[0])
		if err != nil {
			return err
		}
		size -= len(line) + 1
		lost += max(1, all[0].Lost)
	}
	return rewrite(path, all, agent, lost)
}

// rewrite replaces the log. A line counts the dropped calls.
func rewrite(path string, all []schema.Unjudged, agent string, lost int) error {
	if lost > 0 {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("making an event id: %w", err)
		}
		all = append([]schema.Unjudged{{EventID: id.String(), Time: time.Now().UTC(), Agent: agent, Lost: lost}}, all...)
	}
	if len(all) == 0 {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	var b bytes.Buffer
	for i := range all {
		line, err := schema.Marshal(&all[i])
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	return Replace(path, b.Bytes())
}

// readUnjudged reads the log; of one that is far too large, its beginning.
func readUnjudged(path string) ([]byte, error) {
	data, _, err := readBounded(path, 2*maxUnjudged)
	if errors.Is(err, errLarge) {
		err = nil
	}
	return data, err
}

// parseUnjudged decodes the lines, and counts those that no shim wrote.
func parseUnjudged(data []byte) (all []schema.Unjudged, faulty int) {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var u schema.Unjudged
		if schema.Unmarshal(line, &u) != nil || !isValid(&u) {
			faulty++
			continue
		}
		all = append(all, u)
	}
	return all, faulty
}

// isValid reports whether a fabric accepts the call.
func isValid(u *schema.Unjudged) bool {
	_, err := bus.Token(u.Agent)
	if err != nil || len(u.EventID) != len(uuid.Nil.String()) || uuid.Validate(u.EventID) != nil {
		return false
	}
	if u.Lost != 0 {
		return u.Lost > 0
	}
	switch u.Decision {
	case schema.Continue, schema.Deny, schema.Fail:
		return u.Event.Known() && len(u.Tool) <= maxText && len(u.Session) <= maxText
	}
	return false
}
