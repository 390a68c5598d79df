"""The sentence for sites where repairs are only reported: `steward status`, the log at start and the doctor say so."""

REPORT_ONLY = 'report only, no node is touched: set repair.mode = "ask" or "act" when the reports look right'
