// Package shimstate stores state that one shim process leaves for the next one of the same agent.
// A process that ends after one event may not learn whether the fabric received its
// acknowledgement.
//
// There is one small file per fabric and agent. A shim replaces it as a whole, under a lock,
// so that concurrent shims of one agent do not lose each other's entries. An unreadable file
// counts as empty: the fabric may then deliver an item twice, but loses none.
package shimstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// folder is where the files lie in the state folder: one folder per fabric.
	folder = "shim"
	suffix = ".json"
	// maxFabrics bounds the fabrics that are looked at.
	maxFabrics = 64
	// oldest is the age at which files of agents that are gone are taken away.
	oldest = 30 * 24 * time.Hour
	// useful is how long an event is worth being acknowledged: long after its lease
	// its items went out again, and it is the sequences that cut them.
	useful = 10 * time.Minute
	// patience is how long a shim waits for others that write.
	patience = 250 * time.Millisecond
)

// A Folder is the state folder of shims; an empty one keeps nothing.
type Folder string

// ErrNowhere says that nothing can be kept, neither a policy nor what is to be handed in.
var ErrNowhere = errors.New("agentshim cannot store its state")

// probeSize is the size of the file that [Folder.Usable] writes: a full disk takes an empty one.
const probeSize = 64 << 10

// Usable says why nothing can be kept in the folder; nil: it can. It writes a file there, and takes it away.
func (f Folder) Usable() error {
	if f == "" {
		return fmt.Errorf("%w: found no folder that only this user can write; name one with --state, or set HOME", ErrNowhere)
	}
	dir := filepath.Join(string(f), folder)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = Put(filepath.Join(dir, ".usable"), make([]byte, probeSize), func(string, string) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("%w: %w; name another folder with --state", ErrNowhere, err)
	}
	return nil
}

// Load is what was kept for an agent, of every fabric. The error says what could
// not be read; the rest is there.
func (f Folder) Load(agent string) (all []client.Handover, err error) {
	if f == "" {
		return nil, nil
	}
	name, err := fileName(agent)
	if err != nil {
		return nil, err
	}
	fabrics, err := f.fabrics()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range fabrics {
		fabric, err := bus.ParseToken(e.Name())
		if err != nil {
			continue // nobody's of ours
		}
		path := filepath.Join(string(f), folder, e.Name(), name)
		r, err := load(path)
		if err != nil {
			errs = append(errs, err)
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > useful {
			r.Events = nil
		}
		if h := (client.Handover{Fabric: fabric, Agent: agent, Events: r.Events, Sequences: r.Sequences}); len(h.Events)+len(h.Sequences) > 0 {
			all = append(all, h)
		}
	}
	return all, errors.Join(errs...)
}

// fabrics are the folders of fabrics; of too many, those that were written last.
func (f Folder) fabrics() ([]fs.DirEntry, error) {
	all, err := os.ReadDir(filepath.Join(string(f), folder))
	if len(all) <= maxFabrics {
		return all, err
	}
	written := make(map[string]time.Time, len(all))
	for _, e := range all {
		if info, err := e.Info(); err == nil {
			written[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return written[b.Name()].Compare(written[a.Name()]) })
	return all[:maxFabrics], err
}

// Keep adds what could not be acknowledged to what is kept, and takes out the
// events that are acknowledged by now.
func (f Folder) Keep(h client.Handover, acknowledged []string) error {
	if f == "" || h.Fabric == "" {
		return nil
	}
	fabric, err := bus.Token(h.Fabric)
	if err != nil {
		return fmt.Errorf("the fabric's id: %w", err)
	}
	name, err := fileName(h.Agent)
	if err != nil {
		return err
	}
	dir := filepath.Join(string(f), folder, fabric)
	unlock, err := writable(dir)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	r, _ := load(path) // one that cannot be read is replaced
	if r.change(h, acknowledged) {
		err = store(path, r)
	}
	sweep(dir)
	return err
}

func fileName(agent string) (string, error) {
	token, err := bus.Token(agent)
	if err != nil {
		return "", fmt.Errorf("the agent's name: %w", err)
	}
	return token + suffix, nil
}

// load reads a file; none is an empty one.
func load(path string) (r record, err error) {
	data, _, err := bounded(path, maxFile)
	if err != nil || data == nil {
		return r, err
	}
	if r, err = decode(data); err != nil {
		return record{}, fmt.Errorf("%s is not a file of agentshim and counts as empty: %w", path, err)
	}
	return r, nil
}

// store writes a record into its file.
func store(path string, r record) error {
	data, err := schema.Marshal(&r)
	if err != nil {
		return err
	}
	return Replace(path, data)
}

// sweep takes away what is so old that nobody asks for it any more. The caller
// holds the lock.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		age := oldest
		if strings.HasPrefix(name, ".new-") {
			age = time.Minute // its writer died
		} else if !strings.HasSuffix(name, suffix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > age {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}
