/* The variants of the metrics page. */
#pragma once

enum page_format { PAGE_TEXT, PAGE_OPENMETRICS, PAGE_FORMATS };
enum page_encoding { PAGE_IDENTITY, PAGE_GZIP, PAGE_ENCODINGS };
