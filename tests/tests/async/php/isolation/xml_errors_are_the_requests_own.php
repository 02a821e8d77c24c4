<?php
$own = strlen($m) % 2;
libxml_use_internal_errors(true);
meet('a');
(new DOMDocument)->loadXML("<a><$m></a>");
meet('b');
$errors = libxml_get_errors();
libxml_use_internal_errors(false);
meet('c');
echo libxml_use_internal_errors() ? 'still on ' : '', trim($errors[0]->message), count($errors) < 4 ? '' : count($errors);
