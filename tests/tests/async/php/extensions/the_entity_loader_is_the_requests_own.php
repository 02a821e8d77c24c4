<?php
__ODD__;
if ($odd) {
    libxml_set_external_entity_loader(function ($public, $system) use ($m) {
        usleep(100);
        $stream = fopen('php://memory', 'w+');
        fwrite($stream, $m);
        rewind($stream);
        return $stream;
    });
}
meet('a');
$document = new DOMDocument;
@$document->loadXML("__XML__", LIBXML_NOENT);
// libxml2 2.15 counts an entity's text twice.
$text = preg_replace("/^($m)\\1$/", '$1', $document->textContent);
echo $odd ? $text : $m . $text;
meet('b');
