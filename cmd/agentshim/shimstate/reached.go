package shimstate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/hookfabric/hookfabric/bus"
)

const (
	reachedFolder = ".reached" // has one file per URL, with the fabrics that answered there
	// MaxReached limits the fabrics of one URL. Above it every call counts as guarded.
	MaxReached     = 16
	maxReachedFile = 16 << 10 // limits the file of a URL, in bytes
)

// errManyFabrics says that more than [MaxReached] fabrics answered at one URL.
var errManyFabrics = fmt.Errorf("more than %d fabrics answered at this URL; 'agentshim policy reset' forgets them", MaxReached)

// Unnamed stands for the URL of a shim that names no fabric.
const Unnamed = "whichever"

// Fabrics returns the fabrics that answered at a URL, in order. All count: another server there can add
// guards, but remove none.
func (f Folder) Fabrics(url string) ([]string, error) {
	if f == "" {
		return nil, nil
	}
	all, _, err := f.reachedFile(url).load()
	return all, err
}

// decodeReached reads the file of a URL. If it has too many fabrics, the first ones are returned with the error.
func decodeReached(data []byte) (all []string, err error) {
	for token := range bytes.FieldsSeq(data) {
		fabric, err := bus.ParseToken(string(token))
		if err != nil {
			return nil, fmt.Errorf("it does not name a fabric: %w; 'agentshim policy reset' replaces the file", err)
		}
		all = append(all, fabric)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("it does not name a fabric; 'agentshim policy reset' replaces the file")
	case len(all) > MaxReached:
		return all[:MaxReached], errManyFabrics
	}
	return all, nil
}

func encodeReached(all []string) ([]byte, error) {
	var b bytes.Buffer
	for _, fabric := range all {
		token, err := bus.Token(fabric)
		if err != nil {
			return nil, err
		}
		b.WriteString(token + "\n")
	}
	return b.Bytes(), nil
}

// reachedFile returns the file of a URL. Its name is a digest of the URL without passwords.
func (f Folder) reachedFile(url string) file[[]string] {
	if url == "" {
		url = bus.DefaultURL
	}
	return f.reachedFileNamed(digestName(bus.RedactURL(url)))
}

func (f Folder) reachedFileNamed(name string) file[[]string] {
	return file[[]string]{
		name: "the list of fabrics", limit: maxReachedFile, path: f.path(reachedFolder, name), decode: decodeReached, encode: encodeReached,
	}
}

// lockReached locks the files of all URLs.
func (f Folder) lockReached() (unlock func(), err error) {
	if err := os.MkdirAll(f.path(reachedFolder), 0o700); err != nil {
		return nil, err
	}
	return lock(f.path(reachedFolder + ".lock"))
}

// addReached notes a fabric that answered at a URL.
func (f Folder) addReached(url, fabric string) error {
	file := f.reachedFile(url)
	if all, _, err := file.load(); err == nil && slices.Contains(all, fabric) {
		return nil
	}
	unlock, err := f.lockReached()
	if err != nil {
		return err
	}
	defer unlock()
	all, _, err := file.load()
	switch {
	case errors.Is(err, errManyFabrics):
		return err
	case err != nil:
		all = nil // a file that names no fabric is replaced
	case slices.Contains(all, fabric):
		return nil
	}
	return file.store(append(all, fabric))
}

// Forget removes the fabrics that answered at a URL, or at any, with their policies and keys if no other URL
// has them.
func (f Folder) Forget(url string) (forgotten []string, err error) {
	if f == "" {
		return nil, nil
	}
	unlock, err := f.lockReached()
	if err != nil {
		return nil, err
	}
	defer unlock()
	files, err := f.reachedFiles()
	if err != nil {
		return nil, err
	}
	at, unnamed := f.reachedFile(url), f.reachedFile(Unnamed)
	var errs []error
	for _, file := range files {
		if all, _, _ := file.load(); url == "" || file.path == at.path {
			forgotten = append(forgotten, all...)
			errs = append(errs, file.remove())
		}
	}
	slices.Sort(forgotten)
	forgotten = slices.Compact(forgotten)
	var remaining []string
	for _, file := range files {
		all, _, err := file.load()
		if file.path == unnamed.path && err == nil && len(all) > 0 { // a shim that names no fabric used that URL as well
			all = slices.DeleteFunc(all, func(fabric string) bool { return slices.Contains(forgotten, fabric) })
			if len(all) == 0 {
				errs = append(errs, file.remove())
			} else {
				errs = append(errs, file.store(all))
			}
		}
		remaining = append(remaining, all...)
	}
	for _, fabric := range forgotten {
		if !slices.Contains(remaining, fabric) {
			errs = append(errs, f.forget(fabric))
		}
	}
	return forgotten, errors.Join(errs...)
}

// reachedFiles returns the files of all URLs.
func (f Folder) reachedFiles() (files []file[[]string], err error) {
	entries, err := os.ReadDir(f.path(reachedFolder))
	for _, e := range entries {
		if len(e.Name()) == 2*16 && e.Type().IsRegular() {
			files = append(files, f.reachedFileNamed(e.Name()))
		}
	}
	return files, err
}

// forget removes a fabric's policy and its key.
func (f Folder) forget(fabric string) error {
	dir, err := f.fabric(fabric)
	if err != nil {
		return err
	}
	return errors.Join(policyFile(dir).remove(), keyFile(dir).remove())
}
