<?php
meet('a');
echo stream_context_get_options(stream_context_get_default())['http']['header'] ?? 'none';
meet('b');
stream_context_set_default(['http' => ['header' => "X-Mark: $m"]]);
meet('c');
echo ' ', stream_context_get_options(stream_context_get_default())['http']['header'];
