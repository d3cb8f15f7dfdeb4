"""Compiled code of summaries: lists of members, the counting of attributes, joins of rows."""
