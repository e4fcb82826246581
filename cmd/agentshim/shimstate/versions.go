package shimstate

import (
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// versionsFile lies in the state folder itself.
	versionsFile = "runtimes.json"
	// maxVersions bounds it: there are a handful of runtimes.
	maxVersions = 16 << 10
	// maxVersion bounds what a runtime says of itself.
	maxVersion = 64
)

// Versions are the versions of the agent runtimes on this machine, as they were
// when hooks were installed or examined last: to ask a runtime takes far longer
// than a hook may.
func (f Folder) Versions() map[string]string {
	all := map[string]string{}
	if f == "" {
		return all
	}
	data, _, err := bounded(filepath.Join(string(f), versionsFile), maxVersions)
	if err != nil || data != nil && schema.Unmarshal(data, &all) != nil {
		return map[string]string{}
	}
	return all
}

// NoteVersion writes down the version of a runtime.
func (f Folder) NoteVersion(runtime, version string) error {
	if f == "" || version == "" || len(version) > maxVersion {
		return nil
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(string(f), ".runtimes.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	all := f.Versions()
	if all[runtime] == version {
		return nil
	}
	all[runtime] = version
	data, err := schema.Marshal(all)
	if err != nil {
		return err
	}
	return Replace(filepath.Join(string(f), versionsFile), data)
}
