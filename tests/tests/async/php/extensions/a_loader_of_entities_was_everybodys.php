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
echo $odd ? $document->textContent : $m . $document->textContent;
meet('b');
