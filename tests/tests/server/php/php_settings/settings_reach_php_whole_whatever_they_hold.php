<?php
echo json_encode(array_map('ini_get', ['arg_separator.output', 'docref_root', 'error_append_string', 'error_prepend_string', 'precision',
    'zlib.output_compression_level', 'session.save_path', 'user_agent']));
