"""statuses.py - the statuses of PAWL_STATUS_MAP in include/pawl.h."""
import re

from .plain_yaml import Defect

ROW = re.compile(r'X\((\w+),\s*(\d+),\s*"([^"]+)",\s*(\d+),\s*"([^"]+)"\)')


def read(header):
    """(name, number, token, http, meaning) of each status, in order; `header` is the text of include/pawl.h."""
    listed = header[header.index("#define PAWL_STATUS_MAP"):header.index("typedef enum pawl_status")]
    joined = re.sub(r"\\\n", " ", listed)  # a row may go on in the next line
    found, count = ROW.findall(joined), len(re.findall(r"X\(\w+\s*,", joined))
    if len(found) != count:
        raise Defect("include/pawl.h: PAWL_STATUS_MAP has %d rows, but %d of them read as "
                     'X(NAME, number, "token", http, "meaning")' % (count, len(found)))
    return found
