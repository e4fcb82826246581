package shimstate

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// injectionsFolder holds injections for a later event: one folder per agent.
	injectionsFolder = ".later"
	// maxInjections limits the injections for one event, in bytes.
	maxInjections = 4 << 20
	// injectionsExpiry is how long injections wait. A tool call ends before that, or never.
	injectionsExpiry = 24 * time.Hour
)

// AddInjections stores injections for the event after an agent's tool call, behind those that are
// stored already. pair identifies the call; empty: any call.
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

func (f Folder) injectionsFile(agent, pair string) (of file[[]schema.Injection], err error) {
	if f == "" {
		return of, errNoFolder
	}
	token, err := agentToken(agent)
	if err != nil {
		return of, err
	}
	name := "any"
	if pair != "" {
		name = digestName(pair)
	}
	dir := f.path(injectionsFolder, token)
	return file[[]schema.Injection]{format: jsonFormat[[]schema.Injection]("the injections of one tool call", maxInjections),
		path: filepath.Join(dir, name+suffix), lock: filepath.Join(dir, lockName), expiry: injectionsExpiry}, nil
}

// digestName returns a file name for a text of any form.
func digestName(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:16])
}
