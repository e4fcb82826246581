package shimstate

import "path/filepath"

const (
	// versionsFile is in the state folder itself.
	versionsFile = "runtimes.json"
	// maxVersions limits it, in bytes: there are few runtimes.
	maxVersions = 16 << 10
	// maxVersion limits the version of one runtime, in bytes.
	maxVersion = 64
)

// Versions returns the versions of the agent runtimes on this machine, as 'agentshim install' or
// 'agentshim doctor' found them last. To ask a runtime takes far longer than a hook may.
func (f Folder) Versions() map[string]string {
	if f == "" {
		return map[string]string{}
	}
	all, _, err := f.versions().load()
	if err != nil || all == nil {
		return map[string]string{}
	}
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
	return file[map[string]string]{format: jsonFormat[map[string]string]("the list of runtimes", maxVersions),
		path: filepath.Join(string(f), versionsFile), lock: filepath.Join(string(f), ".runtimes.lock")}
}
