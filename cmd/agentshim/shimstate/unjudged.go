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
	// unjudgedFile is the record of what nobody judged, one call on a line.
	unjudgedFile = "unjudged"
	// maxUnjudged bounds it, in bytes: some thousand calls.
	maxUnjudged = 1 << 20
	// maxText bounds the free texts of a line.
	maxText = 256
)

// A Record is what shims decided because nobody answered them, until a fabric
// knows of it. It lies in a folder of its own for every fabric, and for every
// URL where none was ever reached.
type Record struct{ dir string }

// Record is the record for a fabric, or for a URL if the fabric is empty.
func (f Folder) Record(fabric, url string) Record {
	dir, err := f.of(fabric)
	switch {
	case f == "":
		return Record{}
	case err != nil:
		return Record{f.placeFile(url) + ".d"}
	}
	return Record{dir}
}

// Add puts a call on the record. Of too many the oldest are forgotten, and
// counted.
func (r Record) Add(u schema.Unjudged) error {
	if r.dir == "" {
		return errors.New("there is no folder for it; name one with --state")
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
			line = append([]byte("\n"), line...) // whoever wrote last died over it
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

// encodeUnjudged is the line of a call. What is too long is cut, so that no name
// of an agent or a tool takes the room of others.
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

// Empty reports whether there is nothing on the record. It costs one look.
func (r Record) Empty() bool {
	info, err := os.Stat(filepath.Join(r.dir, unjudgedFile))
	return r.dir == "" || err != nil || info.Size() == 0
}

// First are the oldest calls on the record, of one agent: of that one if there are
// any. None: there is nothing on it. What cannot be read is an error, and the
// rest is there.
func (r Record) First(agent string, most int) (calls []schema.Unjudged, err error) {
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

// Known takes calls off the record: a fabric knows of them.
func (r Record) Known(calls []schema.Unjudged) error {
	if len(calls) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(calls))
	for i := range calls {
		ids[calls[i].EventID] = true
	}
	return r.drop(ids, calls[0].Agent)
}

// drop takes calls off the record, and lines that cannot be read.
func (r Record) drop(ids map[string]bool, agent string) error {
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

// locked has the file changed by nobody else.
func (r Record) locked(change func(path string) error) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(r.dir, ".unjudged.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return change(filepath.Join(r.dir, unjudgedFile))
}

// shorten forgets the oldest quarter, so that this is not to be done each time.
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

// rewrite replaces the record. What is lost is on it, too.
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

// readUnjudged reads the record; of one that is far too large, its beginning.
func readUnjudged(path string) ([]byte, error) {
	data, _, err := bounded(path, 2*maxUnjudged)
	if errors.Is(err, errLarge) {
		err = nil
	}
	return data, err
}

// parseUnjudged reads the lines, and counts those that no shim wrote.
func parseUnjudged(data []byte) (all []schema.Unjudged, faulty int) {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var u schema.Unjudged
		if schema.Unmarshal(line, &u) != nil || !sound(&u) {
			faulty++
			continue
		}
		all = append(all, u)
	}
	return all, faulty
}

// sound reports whether a fabric takes it.
func sound(u *schema.Unjudged) bool {
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
