// Package snapshot packs a folder and unpacks it somewhere else.
package snapshot
