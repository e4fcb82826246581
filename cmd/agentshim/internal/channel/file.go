package channel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// FileName is the name of the file that holds the current text.
const FileName = "hook_post_tool_use.json"

const (
	tmpName       = FileName + ".tmp"
	withdrawnName = FileName + ".withdrawn"
	stateName     = ".hookfabric-writer.json"
	writerLock    = ".hookfabric-writer.lock"
	readerLock    = ".hookfabric-reader.lock"
	// maxFile limits the size of a file: the longest text, with every byte of it escaped.
	maxFile = 6*schema.MaxText + 64<<10
)

// A Text is the content of the file.
type Text struct {
	Inject Inject `json:"inject"`
	// Matcher selects the tools whose results may carry the text. Third-party readers support no alternatives,
	// so it is one of Matchers after the other.
	Matcher  string `json:"tool_matcher"`
	Matchers string `json:"tool_matchers,omitzero"`
	// Sequence increases from text to text, also across restarts.
	Sequence uint64 `json:"sequence"`
	// Expires is when the text expires, in seconds since 1970. Its writer is then gone. No number: never.
	Expires jsontext.Value `json:"expires_at,omitzero"`
}

// expiring returns a time in the form of [Text.Expires].
func expiring(t time.Time) jsontext.Value {
	return jsontext.Value(strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64))
}

func (t *Text) expired(now time.Time) bool {
	at, err := strconv.ParseFloat(strings.Trim(string(t.Expires), `"`), 64)
	return err == nil && float64(now.UnixMilli())/1000 > at
}

// An Inject is the content of a text and how the agent gets it.
type Inject struct {
	Content  string          `json:"content"`
	Strategy schema.Strategy `json:"strategy"`
}

// state is what a writer stores for the next one.
type state struct {
	// Fabric is the fabric that the text came from, and Agent the agent that it is for.
	Fabric string `json:"fabric,omitzero"`
	Agent  string `json:"agent,omitzero"`
	// Event is the event under which the writer drained the current text; empty: there is none.
	Event   string    `json:"event,omitzero"`
	Back    bool      `json:"back,omitzero"`    // the writer withdrew the text
	Item    uint64    `json:"item,omitzero"`    // the sequence of the text in the fabric
	Expires time.Time `json:"expires,omitzero"` // when the current text expires
	// Parked are the events of the texts that wait for a tool call while another text is current.
	Parked []string `json:"parked,omitzero"`
	// Last is the sequence of the last text here, and Offset the difference to the fabric's. Readers ignore a
	// sequence that does not grow, and another fabric starts at 1.
	Last   uint64 `json:"last,omitzero"`
	Offset uint64 `json:"offset,omitzero"`
}

// errGarbage: the file holds no text, and never will.
var errGarbage = errors.New("not a text of 'agentshim drain --channel'; agentshim removes the file")

func readFile(path string, into any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %w", path, errGarbage) // reading a pipe would block the agent's calls
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("%s has more than %d bytes: %w", path, maxFile, errGarbage)
	}
	if err := schema.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w: %w", path, err, errGarbage)
	}
	return nil
}

// writeFile writes a JSON file that only its owner can read, and syncs it to disk.
func writeFile(path string, v any) error {
	data, err := schema.Marshal(v)
	if err != nil {
		return err
	}
	_ = os.Remove(path) // a file of another user would keep its mode
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// replaceFile is like writeFile, but atomic: readers see the old content or all of the new one.
func replaceFile(path string, v any) error {
	if err := writeFile(path+".new", v); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) has(name string) bool {
	_, err := os.Lstat(f.path(name))
	return err == nil
}

// lock locks a file exclusively, without waiting. ok is false if another process holds the lock.
func (f folder) lock(name string) (unlock func(), ok bool, err error) {
	l, err := shimstate.TryLock(f.path(name))
	if errors.Is(err, shimstate.ErrLocked) {
		err = nil
	}
	return func() { _ = l.Close() }, l != nil, err
}

// move renames a file, and reports whether the file existed.
func (f folder) move(from, to string) (bool, error) {
	err := os.Rename(f.path(from), f.path(to))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// drop removes a file. A missing file is not an error.
func (f folder) drop(name string) error {
	if err := os.Remove(f.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
