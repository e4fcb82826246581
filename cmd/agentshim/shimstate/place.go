package shimstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hookfabric/hookfabric/bus"
)

const (
	// reachedFolder says which fabrics answered where. A token has no dot at its
	// beginning.
	reachedFolder = ".reached"
	// MaxPlaced bounds the fabrics of one place whose policies count. Where more answered, every call counts as guarded:
	// to forget one of them would let pass what it guards.
	MaxPlaced = 16
	// maxPlaceFile bounds the file of a place, in bytes.
	maxPlaceFile = 16 << 10
)

// ErrManyFabrics says that more fabrics answered at one place than are remembered.
var ErrManyFabrics = fmt.Errorf("more than %d fabrics answered at this URL; 'agentshim policy reset' forgets them", MaxPlaced)

// Unnamed stands in the place of a URL for those who name no fabric: they are
// judged by whichever one the agents of this folder are connected to.
const Unnamed = "whichever"

// Fabrics are those that answered at a URL and whose policies were taken over, the first one first. All of them
// count: a server that answers at the place of another fabric may add to what is guarded, and takes nothing of it away.
func (f Folder) Fabrics(url string) ([]string, error) {
	if f == "" {
		return nil, nil
	}
	return readPlace(f.placeFile(url))
}

// readPlace reads the file of a place. Of too many fabrics those that count are there beside the error.
func readPlace(path string) (all []string, err error) {
	data, _, err := bounded(path, maxPlaceFile)
	if err != nil || data == nil {
		return nil, err
	}
	for token := range bytes.FieldsSeq(data) {
		fabric, err := bus.ParseToken(string(token))
		if err != nil {
			return nil, fmt.Errorf("%s does not name a fabric: %w; 'agentshim policy reset' replaces the file", path, err)
		}
		all = append(all, fabric)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s does not name a fabric; 'agentshim policy reset' replaces the file", path)
	case len(all) > MaxPlaced:
		return all[:MaxPlaced], fmt.Errorf("%s: %w", path, ErrManyFabrics)
	}
	return all, nil
}

// writePlace replaces the file of a place; without fabrics there is none.
func writePlace(path string, all []string) error {
	if len(all) == 0 {
		return os.Remove(path)
	}
	var b bytes.Buffer
	for _, fabric := range all {
		token, err := bus.Token(fabric)
		if err != nil {
			return err
		}
		b.WriteString(token + "\n")
	}
	return Replace(path, b.Bytes())
}

// placeFile is the file about a URL. Its name is a digest of the URL without
// the passwords in it.
func (f Folder) placeFile(url string) string {
	if url == "" {
		url = bus.DefaultURL
	}
	digest := sha256.Sum256([]byte(bus.RedactURL(url)))
	return filepath.Join(string(f), folder, reachedFolder, hex.EncodeToString(digest[:16]))
}

// places locks the files of places, which no other process changes then.
func (f Folder) places() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(string(f), folder, reachedFolder), 0o700); err != nil {
		return nil, err
	}
	return lock(filepath.Join(string(f), folder, reachedFolder+".lock"))
}

// reach notes who answered at a URL, beside those who did before.
func (f Folder) reach(url, fabric string) error {
	path := f.placeFile(url)
	if all, err := readPlace(path); err == nil && slices.Contains(all, fabric) {
		return nil
	}
	unlock, err := f.places()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := readPlace(path)
	switch {
	case errors.Is(err, ErrManyFabrics):
		return err
	case err != nil:
		all = nil // a file that names no fabric is replaced
	case slices.Contains(all, fabric):
		return nil
	}
	return writePlace(path, append(all, fabric))
}

// Forget forgets which fabrics answered at a URL; empty: at any. The policies and keys of those that answered nowhere
// else go with it. What is to be handed over or handed in stays.
func (f Folder) Forget(url string) (forgotten []string, err error) {
	if f == "" {
		return nil, nil
	}
	unlock, err := f.places()
	if err != nil {
		return nil, err
	}
	defer unlock()
	files, err := f.placeFiles()
	if err != nil {
		return nil, err
	}
	at, unnamed := f.placeFile(url), f.placeFile(Unnamed)
	var errs []error
	for _, path := range files {
		if all, _ := readPlace(path); url == "" || path == at {
			forgotten = append(forgotten, all...)
			errs = append(errs, writePlace(path, nil))
		}
	}
	slices.Sort(forgotten)
	forgotten = slices.Compact(forgotten)
	var stay []string
	for _, path := range files {
		all, err := readPlace(path)
		if path == unnamed && err == nil && len(all) > 0 { // a shim that names no fabric meant that place as well
			all = slices.DeleteFunc(all, func(fabric string) bool { return slices.Contains(forgotten, fabric) })
			errs = append(errs, writePlace(path, all))
		}
		stay = append(stay, all...)
	}
	for _, fabric := range forgotten {
		if !slices.Contains(stay, fabric) {
			errs = append(errs, f.forget(fabric))
		}
	}
	return forgotten, errors.Join(errs...)
}

// placeFiles are the files of all places.
func (f Folder) placeFiles() (files []string, err error) {
	entries, err := os.ReadDir(filepath.Join(string(f), folder, reachedFolder))
	for _, e := range entries {
		if len(e.Name()) == 2*16 && e.Type().IsRegular() {
			files = append(files, filepath.Join(string(f), folder, reachedFolder, e.Name()))
		}
	}
	return files, err
}

// forget takes away a fabric's policy and its key.
func (f Folder) forget(fabric string) error {
	dir, err := f.of(fabric)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{policyFile, keyFile} {
		if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
