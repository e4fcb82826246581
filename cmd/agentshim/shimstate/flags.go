package shimstate

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// flagsFolder holds agents' flags: one folder per agent, with one file per session.
	flagsFolder = ".flags"
	// maxFlags limits the flags of a session, in bytes: every event carries them.
	maxFlags = 64 << 10
	// flagsExpiry is how long flags are stored after their last change.
	flagsExpiry = 30 * 24 * time.Hour
)

// Flags returns the flags of an agent in a session, as a JSON object; nil if it has none, or they
// cannot be read.
func (f Folder) Flags(agent, session string) jsontext.Value {
	file, err := f.flagsFile(agent, session)
	if err != nil {
		return nil
	}
	flags, _, err := file.load()
	if err != nil {
		return nil
	}
	return flags
}

// SetFlags sets flags of an agent in a session; null removes one. If there would be too many, or
// they would be too long, all stay as they were.
func (f Folder) SetFlags(agent, session string, set map[string]jsontext.Value) error {
	file, err := f.flagsFile(agent, session)
	if err != nil {
		return err
	}
	return file.update(func(flags *jsontext.Value) (bool, error) {
		all := map[string]jsontext.Value{}
		if *flags != nil {
			if err := schema.Unmarshal(*flags, &all); err != nil {
				clear(all) // unreadable flags are replaced
			}
		}
		maps.Copy(all, set)
		maps.DeleteFunc(all, func(_ string, v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' })
		if len(all) > schema.MaxFlags {
			return false, fmt.Errorf("the agent would have %d flags; the limit is %d", len(all), schema.MaxFlags)
		}
		data, err := schema.Marshal(all)
		*flags = data
		return true, err
	})
}

func (f Folder) flagsFile(agent, session string) (of file[jsontext.Value], err error) {
	if f == "" {
		return of, errNoFolder
	}
	token, err := agentToken(agent)
	if err != nil {
		return of, err
	}
	dir := f.path(flagsFolder, token)
	return file[jsontext.Value]{
		format: format[jsontext.Value]{name: "the agent's flags", limit: maxFlags, decode: decodeFlags,
			encode: func(v jsontext.Value) ([]byte, error) { return v, nil }},
		path: filepath.Join(dir, digestName(session)+suffix), lock: filepath.Join(dir, lockName), expiry: flagsExpiry,
	}, nil
}

func decodeFlags(data []byte) (jsontext.Value, error) {
	if v := jsontext.Value(data); v.Kind() == '{' && v.IsValid() {
		return v, nil
	}
	return nil, errors.New("it is not a JSON object")
}
