// Package typescript holds hookfabric.ts, the fabric's hooks for agents written in
// TypeScript: one file, which users copy, and hookfabric.mjs, which is made of it
// by taking the types out. This package holds their tests and nothing to import.
package typescript
