package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// whole reports a stream that is on disk and was not taken up, because what is written
// about it there is damaged. The server says so in its log and goes on without, and whoever
// needs the stream would make it anew: what was frozen, or waited for an agent, would be
// gone in silence. In a cluster the others bring it back, and a leaf has none.
func (s *Server) whole() error {
	if s.cluster != nil || s.IsLeaf() {
		return nil
	}
	info, err := s.nats.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return fmt.Errorf("asking what was taken up of it: %w", err)
	}
	for _, a := range info.AccountDetails {
		folder := filepath.Join(info.Config.StoreDir, a.Id, "streams")
		kept, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		taken := make(map[string]bool, len(a.Streams))
		for _, st := range a.Streams {
			taken[st.Name] = true
		}
		for _, e := range kept {
			if taken[e.Name()] || strings.HasPrefix(e.Name(), ".") { // that is one being deleted
				continue
			}
			// One that was being made when the server was killed holds nothing yet.
			dir := filepath.Join(folder, e.Name())
			if size, err := sizeOf(filepath.Join(dir, "msgs")); err == nil && size > 0 {
				return fmt.Errorf("%s is damaged, and what it holds can not be read; bring the data directory back from a copy, "+
					"or move that folder away to go on without what it holds", dir)
			}
		}
	}
	return nil
}
