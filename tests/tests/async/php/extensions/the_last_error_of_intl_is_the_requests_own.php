<?php
transliterator_create("no-$m");
meet('a');
echo preg_match('/"(no-.*)"/', intl_get_error_message(), $found) ? $found[1] : intl_get_error_message();
