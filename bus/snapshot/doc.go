// Package snapshot packs a folder and unpacks it somewhere else.
//
// A snapshot is a compressed tar of regular files, folders and links that stay inside the
// folder. The same content always gives the same bytes, so that it is stored once: names
// are sorted, and of each file only the name, the content and the executable bit are kept.
//
// Unpacking does not trust the archive. It writes nothing outside the folder and creates
// no link that leads out of it. A reader of the folder sees the old content or the new
// content, never a mixture. Several processes may unpack into the same folder at once.
//
// Only this module imports it.
package snapshot
