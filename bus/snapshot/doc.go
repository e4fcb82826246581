// Package snapshot packs a folder and unpacks it somewhere else.
//
// A snapshot is a compressed tar of regular files, folders and links that stay
// inside of the folder. The same content is always the same bytes, so that it is
// stored once: names are sorted, and of all that a file system knows of a file
// only the name, the content and whether it can be run are kept.
//
// Unpacking believes nothing that the archive says. Whatever is in it, nothing
// outside of the folder is written, and no link leads out of it. Who reads the
// folder meanwhile sees the old one or the new one, and many processes may
// unpack into the same folder at once.
package snapshot
