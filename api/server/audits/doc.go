// Package audits serves AuditService, and what other nodes ask of the audit log of this one. It
// translates, and decides nothing.
package audits
