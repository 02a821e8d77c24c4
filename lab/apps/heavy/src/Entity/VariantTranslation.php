<?php

namespace Heavy\Entity;

use Doctrine\ORM\Mapping as ORM;
use Symfony\Component\Serializer\Annotation\Groups;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_variant_translation')]
class VariantTranslation
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    public int $id;

    #[ORM\ManyToOne(targetEntity: Variant::class, inversedBy: 'translations')]
    public Variant $variant;

    #[ORM\Column(type: 'string')]
    public string $locale;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $name;
}
