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

	"github.com/hookfabric/hookfabric/schema"
)

// FileName is the file in which a text lies.
const FileName = "hook_post_tool_use.json"

const (
	tmpName       = FileName + ".tmp"
	withdrawnName = FileName + ".withdrawn"
	stateName     = ".hookfabric-writer.json"
	writerLock    = ".hookfabric-writer.lock"
	readerLock    = ".hookfabric-reader.lock"
	// maxFile bounds a file: the longest text, with every byte of it escaped.
	maxFile = 6*schema.MaxText + 64<<10
)

// A Text is what lies in the file.
type Text struct {
	Inject Inject `json:"inject"`
	// Matcher picks the tools after whose calls the agent reads it. Other readers know no
	// alternatives in it: of several it is one after the other, and Matchers are all.
	Matcher  string `json:"tool_matcher"`
	Matchers string `json:"tool_matchers,omitzero"`
	// Sequence grows from text to text, whatever restarts.
	Sequence uint64 `json:"sequence"`
	// Expires is when it counts no more, in seconds since 1970: its writer is gone then,
	// and the fabric gives it to another asker. What is no number is never.
	Expires jsontext.Value `json:"expires_at,omitzero"`
}

// expiring is a time as [Text.Expires] has it.
func expiring(t time.Time) jsontext.Value {
	return jsontext.Value(strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64))
}

// expired reports whether the text counts no more.
func (t *Text) expired(now time.Time) bool {
	at, err := strconv.ParseFloat(strings.Trim(string(t.Expires), `"`), 64)
	return err == nil && float64(now.UnixMilli())/1000 > at
}

// An Inject is a text and where it goes.
type Inject struct {
	Content  string          `json:"content"`
	Strategy schema.Strategy `json:"strategy"`
}

// state is what the next writer must know.
type state struct {
	// Fabric is whose queue it was, and Agent who it was for.
	Fabric string `json:"fabric,omitzero"`
	Agent  string `json:"agent,omitzero"`
	// Event is what the text went out with that may lie there; empty: none does.
	Event string `json:"event,omitzero"`
	// Back: it was taken back.
	Back bool `json:"back,omitzero"`
	// Item is that text's sequence in the fabric.
	Item uint64 `json:"item,omitzero"`
	// Expires is when what lies there counts no more.
	Expires time.Time `json:"expires,omitzero"`
	// Parked are events whose texts wait for a tool, while others lie there.
	Parked []string `json:"parked,omitzero"`
	// Last is the sequence of the last text that was put here, and Offset what is
	// added to those of the fabric: another fabric begins anew, and of several sources
	// an older item may come later. Readers take what does not grow for told.
	Last   uint64 `json:"last,omitzero"`
	Offset uint64 `json:"offset,omitzero"`
}

// errGarbage: what lies there is no text, and never becomes one.
var errGarbage = errors.New("not a text of 'agentshim drain --channel'; agentshim removes the file")

// readFile reads a JSON file that is not too large.
func readFile(path string, into any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %w", path, errGarbage) // a pipe would hold up the agent's calls
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

// writeFile writes a JSON file that only its owner reads, and has it on disk.
func writeFile(path string, v any) error {
	data, err := schema.Marshal(v)
	if err != nil {
		return err
	}
	_ = os.Remove(path) // of somebody else's, the mode would stay
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// replaceFile is writeFile so that readers see what was there before, or all of it.
func replaceFile(path string, v any) error {
	if err := writeFile(path+".new", v); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// a folder holds the files.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) has(name string) bool {
	_, err := os.Lstat(f.path(name))
	return err == nil
}

// move renames a file and reports whether it was there.
func (f folder) move(from, to string) (bool, error) {
	err := os.Rename(f.path(from), f.path(to))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// drop takes a file away; one that is not there is.
func (f folder) drop(name string) error {
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
