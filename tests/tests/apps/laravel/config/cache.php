<?php
// A cache that lives as long as the request.
return ['default' => 'array', 'stores' => ['array' => ['driver' => 'array', 'serialize' => false]], 'prefix' => 'test'];
