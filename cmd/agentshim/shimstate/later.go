package shimstate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	injectionsFolder = ".later" // holds injections for a later event: one folder per agent
	maxInjections    = 4 << 20  // limits the injections for one event, in bytes
	// injectionsExpiry is how long injections wait. A tool call ends before that, or never.
	injectionsExpiry = 24 * time.Hour
)

// AddInjections stores injections for the event after an agent's tool call; an empty pair: after any call.
func (f Folder) AddInjections(agent, pair string, all []schema.Injection) error {
	file, err := f.injectionsFile(agent, pair)
	if err != nil {
		return err
	}
	return file.update(func(stored *[]schema.Injection) (bool, error) {
		*stored = append(*stored, all...)
		return true, nil
	})
}

// Injections returns the injections that are stored for the event after a call.
func (f Folder) Injections(agent, pair string) []schema.Injection {
	file, err := f.injectionsFile(agent, pair)
	if err != nil {
		return nil
	}
	all, _, _ := file.load()
	return all
}

// RemoveInjections removes the injections for the event after a call.
func (f Folder) RemoveInjections(agent, pair string) {
	if file, err := f.injectionsFile(agent, pair); err == nil {
		_ = file.remove()
	}
}

// agentFile returns a file about an agent in a folder of such files.
func agentFile[T any](f Folder, folder, agent, name, what string, limit int, expiry time.Duration) (of file[T], err error) {
	if f == "" {
		return of, errNoFolder
	}
	token, err := agentToken(agent)
	if err != nil {
		return of, err
	}
	dir := f.path(folder, token)
	return jsonFile[T](what, limit, filepath.Join(dir, name+suffix), filepath.Join(dir, lockName), expiry), nil
}

func (f Folder) injectionsFile(agent, pair string) (file[[]schema.Injection], error) {
	name := "any"
	if pair != "" {
		name = digestName(pair)
	}
	return agentFile[[]schema.Injection](f, injectionsFolder, agent, name, "the injections of one tool call", maxInjections, injectionsExpiry)
}

// digestName returns a file name for a text of any form.
func digestName(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:16])
}

const (
	flagsFolder = ".flags"            // holds agents' flags: one folder per agent, with one file per session
	maxFlags    = 64 << 10            // limits the flags of a session, in bytes: every event carries them
	flagsExpiry = 30 * 24 * time.Hour // how long flags are stored after their last change
)

// Flags returns the readable flags of an agent in a session, as a JSON object.
func (f Folder) Flags(agent, session string) jsontext.Value {
	file, err := f.flagsFile(agent, session)
	if err != nil {
		return nil
	}
	flags, _, err := file.load()
	if err != nil || flags == nil {
		return nil
	}
	data, _ := schema.Marshal(flags) // they were JSON
	return data
}

// SetFlags sets flags; null removes one. If they would be too many or too long, all stay as they were.
func (f Folder) SetFlags(agent, session string, set map[string]jsontext.Value) error {
	file, err := f.flagsFile(agent, session)
	if err != nil {
		return err
	}
	return file.update(func(flags *map[string]jsontext.Value) (bool, error) {
		if *flags == nil {
			*flags = map[string]jsontext.Value{}
		}
		maps.Copy(*flags, set)
		maps.DeleteFunc(*flags, func(_ string, v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' })
		if len(*flags) > schema.MaxFlags {
			return false, fmt.Errorf("the agent would have %d flags; the limit is %d", len(*flags), schema.MaxFlags)
		}
		return true, nil
	})
}

func (f Folder) flagsFile(agent, session string) (file[map[string]jsontext.Value], error) {
	return agentFile[map[string]jsontext.Value](f, flagsFolder, agent, digestName(session), "the agent's flags", maxFlags, flagsExpiry)
}

const (
	versionsFile = "runtimes.json" // in the state folder itself
	maxVersions  = 16 << 10        // limits it, in bytes: there are few runtimes
	maxVersion   = 64              // limits the version of one runtime, in bytes
)

// Versions returns the versions of runtimes that install or doctor found last: a hook has no time to ask.
func (f Folder) Versions() map[string]string {
	if f == "" {
		return nil
	}
	all, _, _ := f.versions().load()
	return all
}

// NoteVersion stores the version of a runtime.
func (f Folder) NoteVersion(runtime, version string) error {
	if f == "" || version == "" || len(version) > maxVersion {
		return nil
	}
	return f.versions().update(func(all *map[string]string) (bool, error) {
		if (*all)[runtime] == version {
			return false, nil
		}
		if *all == nil {
			*all = map[string]string{}
		}
		(*all)[runtime] = version
		return true, nil
	})
}

func (f Folder) versions() file[map[string]string] {
	return jsonFile[map[string]string]("the list of runtimes", maxVersions, filepath.Join(string(f), versionsFile), filepath.Join(string(f), ".runtimes.lock"), 0)
}
